"""What an evaluation has measured so far, one file per measurement: a killed evaluation goes on where it was.

A measurement is found again by its key: version of marlab, game, protocol, and weights and settings of the players.
So it can also be taken from other evaluations, which may have run side by side. The key does not know the code: after
changes of it, measure into a new run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import marlab
from marlab.lab.errors import UserError
from marlab.lab.runs.files import read_json, write_json

FOLDER = "measured"


class Measurements:
    """Measurements by their keys; without a folder they are kept in memory only."""

    def __init__(
        self, folder: Path | None = None, others: Sequence[Path] = (), safe_point: Callable[[], None] = lambda: None
    ) -> None:
        """others: more folders to read from. safe_point: called where the work may be left, raises to leave it."""
        self.folder, self.others, self.safe_point = folder, tuple(others), safe_point
        self.reused = 0
        """Measurements that were there before."""
        self._values: dict[str, Any] = {}

    def get(self, *key: Any) -> Any | None:
        """What was measured under a key, or None."""
        name = _name(key)
        if name not in self._values:
            file = next((file for file in self._files(name) if file.exists()), None)
            if file is None:
                return None
            stored = read_json(file, lambda why: UserError(f"{why}; remove it to measure it again."))
            if not isinstance(stored, dict) or "value" not in stored:
                raise UserError(f"{file} is not a measurement; remove it to measure it again.")
            self._values[name] = stored["value"]
            self.reused += 1
        return self._values[name]

    def put(self, value: Any, *key: Any) -> None:
        name = _name(key)
        self._values[name] = value
        if self.folder is not None:
            write_json(self.folder / f"{name}.json", {"key": key, "value": value})

    def _files(self, name: str) -> list[Path]:
        folders = [*([] if self.folder is None else [self.folder]), *self.others]
        return [folder / f"{name}.json" for folder in folders]


def _name(key: tuple[Any, ...]) -> str:
    return hashlib.sha256(json.dumps([marlab.__version__, *key]).encode()).hexdigest()[:24]
