"""C code of ours, built with the system's compiler when it is first used.

A built library is kept in the user's cache directory under a name that holds its source, its flags and the processor,
and is loaded only if it is what was built. Without a compiler there is a sentence instead: everything that has a
native version works without it, only slower.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from marlab.lab.runs.files import write_text

FLAGS = ("-O3", "-march=native", "-ffp-contract=off", "-fno-strict-aliasing", "-fPIC", "-shared")
BUILD_LIMIT_S = 60


@lru_cache(maxsize=64)
def library_of(source: Path, *defines: str) -> ctypes.CDLL | str:
    """The library of a C file, or why there is none; `defines` as NAME=VALUE.

    Built to a temporary name and moved, so that two processes may do it.
    """
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return "no C compiler was found"
    options = (*FLAGS, *(f"-D{define}" for define in defines))
    key = hashlib.sha256(repr((source.read_text(), options, _processor())).encode()).hexdigest()[:16]
    try:
        library = _cache() / f"{source.parent.name}_{source.stem}_{key}.so"
        library.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _private(library.parent):
            return f"others may write to {library.parent}"
        if not _intact(library):
            with tempfile.TemporaryDirectory(dir=library.parent) as folder:
                built = Path(folder) / library.name
                command = [compiler, *options, str(source), "-o", str(built), "-lm"]
                subprocess.run(command, check=True, capture_output=True, timeout=BUILD_LIMIT_S)
                digest = hashlib.sha256(built.read_bytes()).hexdigest()
                write_text(library.with_suffix(".sha256"), digest)
                with built.open("r+b") as file:
                    os.fsync(file.fileno())
                built.replace(library)
        return ctypes.CDLL(str(library))
    except subprocess.CalledProcessError as error:
        return f"the compiler said: {error.stderr.decode(errors='replace').strip()[:300]}"
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:  # RuntimeError: this user has no home
        return str(error)


def _intact(library: Path) -> bool:
    """Whether the cached library is what was built: loading one that was cut short kills the process."""
    try:
        return hashlib.sha256(library.read_bytes()).hexdigest() == library.with_suffix(".sha256").read_text()
    except OSError:
        return False


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "marlab"


def _private(folder: Path) -> bool:
    """Whether nobody else can have put a library there."""
    if not hasattr(os, "getuid"):  # where folders of a user are that user's alone
        return True
    status = folder.stat()
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _processor() -> str:
    """What -march=native depends on: a home directory may be shared by different machines."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text().splitlines()
        return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}))
    return f"{platform.machine()} {platform.processor()} {platform.node()}"
