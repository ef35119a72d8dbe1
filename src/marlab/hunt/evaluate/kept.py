"""What an evaluation has measured so far, kept on disk as it goes: a killed evaluation goes on where it was.

One line of JSON per measurement in `measured.jsonl`. A line is found again only by everything that its value depends
on: version, game, protocol, weights and settings of the agents. So the files of evaluations that ran side by side can
simply be joined. A line that was cut off by a kill is measured again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import marlab

FILE = "measured.jsonl"


class Kept:
    """Measurements by their keys; without a path they are kept in memory only."""

    def __init__(self, path: Path | None = None, *, anew: bool = False) -> None:
        """anew: the first measurement replaces the file; until then nothing on disk is lost."""
        self.path, self.found = path, 0
        self._anew = anew
        self._values: dict[str, Any] = {}
        if path is not None and path.exists() and not anew:
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                try:
                    told = json.loads(line)
                    self._values[told["key"]] = told["value"]
                except (json.JSONDecodeError, KeyError, TypeError):
                    continue  # cut off, or not ours

    def __len__(self) -> int:
        return len(self._values)

    def get(self, *key: Any) -> Any | None:
        """What was measured under a key, or None."""
        value = self._values.get(_name(key))
        self.found += value is not None
        return value

    def put(self, value: Any, *key: Any) -> None:
        self._values[_name(key)] = value
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("w" if self._anew else "a", encoding="utf-8") as file:
                file.write("\n" * _cut_off(self.path) + json.dumps({"key": _name(key), "value": value}) + "\n")
            self._anew = False


def _name(key: tuple[Any, ...]) -> str:
    return json.dumps([marlab.__version__, *key])


def _cut_off(path: Path) -> bool:
    """Whether the file ends in the middle of a line."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        return bool(size) and file.seek(size - 1) == size - 1 and file.read(1) != b"\n"
