"""An identity of code: what other code measured is not the same measurement.

It is a digest of source files as they are on the disk, comments included, and of the versions of the libraries that
compute with them. Simple on purpose: a changed comment costs a measurement, a changed rule never passes as the old one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

HOUSE = Path(__file__).parents[2]
"""The folder of the package."""
SOURCES = (".py", ".c")


@cache
def code_identity(places: Sequence[str], libraries: Sequence[str] = ("torch", "numpy", "scipy")) -> str:
    """A name for the code in rooms and files below the package, such as "hunt/game" or "lab/runs/rng.py"."""
    digest = hashlib.sha256()
    for file in sources(places):
        digest.update(f"{file.relative_to(HOUSE).as_posix()}\0".encode())
        digest.update(file.read_bytes())
    for library in libraries:
        digest.update(f"\0{library} {_version(library)}".encode())
    return digest.hexdigest()[:16]


def sources(places: Sequence[str]) -> list[Path]:
    """The source files of rooms and single files, each once, in the order of their names."""
    found: set[Path] = set()
    for place in places:
        path = HOUSE / place
        files = [path] if path.is_file() else [file for file in path.rglob("*") if file.suffix in SOURCES]
        if not files:
            raise ValueError(f"there is no source at {path}")
        found.update(files)
    return sorted(found)


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "not installed"
