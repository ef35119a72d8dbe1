"""How long a command says nothing: it is run as people run it, and every line of it is timed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Heard(NamedTuple):
    """What a command said, and when it said nothing."""

    code: int
    seconds: float
    lines: list[str]
    longest: float  # seconds before a line, from the start on; what the interpreter takes to end is not counted
    before: str  # the line that ended the longest silence


def listen(words: Sequence[str], folder: Path, seconds: float = 600.0) -> Heard:
    """Run `marlab WORDS` in a folder, without a terminal."""
    lines, longest, before = list[str](), 0.0, ""
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "marlab", *words], cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as process:  # fmt: skip
        began = last = time.monotonic()
        assert process.stdout is not None
        for line in process.stdout:
            now = time.monotonic()
            if now - last > longest:
                longest, before = now - last, line.rstrip("\n")
            last = now
            lines.append(line.rstrip("\n"))
            if now - began > seconds:
                process.kill()
    return Heard(process.returncode, time.monotonic() - began, lines, longest, before)
