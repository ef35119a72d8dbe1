"""Where runs lie: below the folder of all runs, at any depth, and in folders elsewhere that `--output-dir` named.

The latter are written down in `elsewhere.txt` in the folder of all runs, as paths from there, and the record of such a
run names the folder of all runs in turn. Only where both agree is a run taken for one of this folder: a list that came
from a stranger leads nowhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from marlab.lab.errors import UserError
from marlab.lab.runs.files import append, end_broken_line, write_text
from marlab.lab.runs.record import read_record

ELSEWHERE = "elsewhere.txt"
DEEPEST = 4
"""Folders below the folder of all runs that are looked into."""
MOST_BYTES = 50_000
"""A longer list is written anew without the runs that are gone."""


def run_folders(root: Path) -> list[Path]:
    """Every folder with a run of its own (not the parts of another run): by path, those elsewhere last."""
    below = list(_below(root, DEEPEST))
    known = {path.resolve() for path in below} if (root / ELSEWHERE).exists() else set()
    return [*below, *(path for path in _elsewhere(root) if path.resolve() not in known)]


def _below(folder: Path, depth: int) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(e.name for e in entries if e.name[0] not in "._" and e.is_dir())
    except OSError:  # gone in between, or nobody may look
        return
    for path in (folder / name for name in names):
        if (path / "run.json").exists():
            yield path
        elif depth > 1 and not path.is_symlink():
            yield from _below(path, depth - 1)


def _elsewhere(root: Path) -> Iterator[Path]:
    for line in _lines(root):
        path = Path(os.path.normpath(root / line))
        with suppress(UserError):  # gone, or no run any more
            home = read_record(path)["root"]
            if home is not None and (path / home).resolve() == root.resolve():
                yield path


def _lines(root: Path) -> list[str]:
    try:
        text = (root / ELSEWHERE).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    return list(dict.fromkeys(line for line in text.splitlines() if line))


def write_down(path: Path, root: Path) -> str | None:
    """Note that a run is made at `path`; the way from there to `root` for its record. None where it is found without
    that, or is a part of another run."""
    place, home = path.resolve(), root.resolve()
    if place.parent.parent == home or any((above / "run.json").exists() for above in place.parents):
        return None
    way, back = _way(place, home), _way(home, place)
    if not way.isprintable():
        return None
    with suppress(OSError):  # a folder that cannot be written is no reason not to work
        root.mkdir(parents=True, exist_ok=True)
        if (root / ELSEWHERE).exists() and (root / ELSEWHERE).stat().st_size > MOST_BYTES:
            there = [line for line in _lines(root) if (root / line / "run.json").exists()]
            write_text(root / ELSEWHERE, "".join(f"{line}\n" for line in there))
        end_broken_line(root / ELSEWHERE)
        append(root / ELSEWHERE, f"{way}\n".encode())
        return back
    return None


def place_of(path: Path, root: Path) -> str:
    """Where a run lies, as seen from the folder of all runs."""
    return _way(path.absolute(), root.absolute())


def _way(target: Path, start: Path) -> str:
    try:
        return Path(os.path.relpath(target, start)).as_posix()
    except ValueError:  # another drive
        return target.as_posix()
