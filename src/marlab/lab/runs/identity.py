"""An identity of code, and of weights: what other code or other weights measured is not the same measurement.

That of code is a digest of source files as they are on the disk, comments included, and of the versions of the
libraries that compute with them. Simple on purpose: a changed comment costs a measurement, a changed rule never passes
as the old one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

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


def weights_digest(tensors: Iterable[Tensor]) -> str:
    """A name for weights that changes with any of them."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(str(tuple(tensor.shape)).encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]
