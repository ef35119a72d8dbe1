"""What an evaluation has measured so far, one file per measurement: it can be cut anywhere and goes on where it was.

A measurement is found by its key, which holds everything that decides it: the game, the protocol, the weights and
settings of the players. Its random numbers come from a generator that is seeded by the same key, so it does not matter
when, where and beside what it is measured: whole, resumed, in parts or with more agents, the values are equal. The name
of its file also holds an identity of the code (`marlab.lab.runs.identity`), so changed code measures again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from marlab.lab.device import threads
from marlab.lab.errors import UserError
from marlab.lab.runs.files import read_json, write_json

FOLDER = "measured"


class Measurements:
    """Measurements by their keys; without a folder they are kept in memory only."""

    def __init__(
        self, folder: Path | None = None, others: Sequence[Path] = (), safe_point: Callable[[], None] = lambda: None,
        code: str = "",
    ) -> None:  # fmt: skip
        """others: more folders to read from. safe_point: called where the work may be left, raises to leave it. code:
        identity of the code that measures."""
        self.folder, self.others, self.safe_point, self.code = folder, tuple(others), safe_point, code
        self.reused = 0
        """Measurements that were there before."""
        self._values: dict[str, Any] = {}

    def get(self, *key: Any) -> Any | None:
        """What was measured under a key, or None."""
        name = self.name(*key)
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
        name = self.name(*key)
        self._values[name] = value
        if self.folder is not None:
            write_json(self.folder / f"{name}.json", {"key": key, "code": self.code, "value": value})

    def measured(self, make: Callable[[], Any], *key: Any) -> Any:
        """What was measured under a key, made now if it is not known yet; on one thread, as its key says nothing of
        threads."""
        value = self.get(*key)
        if value is None:
            with threads():
                value = make()
            self.put(value, *key)
        return value

    def name(self, *key: Any) -> str:
        """The name of a measurement's file."""
        return _digest(self.code, *key).hex()[:24]

    def unused(self) -> int:
        """Files of this evaluation that nobody asked for. A resumed run has the same settings: other code made them."""
        if self.folder is None or not self.folder.is_dir():
            return 0
        return sum(file.stem not in self._values for file in self.folder.glob("*.json"))

    def _files(self, name: str) -> list[Path]:
        folders = [*([] if self.folder is None else [self.folder]), *self.others]
        return [folder / f"{name}.json" for folder in folders]


def key_seed(*key: Any) -> int:
    """A 63-bit seed for the generator of a measurement. It does not know the code: after a change that changes no
    result, the same numbers come out."""
    return int.from_bytes(_digest(*key)[:8], "big") >> 1


def _digest(*key: Any) -> bytes:
    return hashlib.sha256(json.dumps(key).encode()).digest()
