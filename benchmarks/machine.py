"""What every benchmark prints first: the machine and the versions behind its numbers."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import torch


def describe() -> str:
    """One line: processor, threads, accelerator, Python and torch."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        cpu = f"{names[0]} x {len(names)}" if names else cpu
    gpu = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "no GPU"
    versions = f"Python {platform.python_version()}, torch {torch.__version__}"
    return f"{cpu}, {torch.get_num_threads()} thread(s), {gpu}, {versions}"


def commit() -> str:
    """The commit that was measured, "unknown" outside of git."""
    try:
        done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.strip()
