"""The decision log of a playing agent: JSON lines that explain every action.

A line of kind `decision` tells the day, partner, side, round, the offer on the table, what was done, L1's baseline,
the residual on it, L4's weight, what L1 changed and, where a network decided, the probabilities of accept, reject and
end; where rule W sells, `alternatives`: money of taking the offer, of the own lot if it is taken, and what waiting is
worth (null: not known yet). Further kinds: `start` (settings), `day` (goal and bounds), `round` (L1's caps and budget
as signed deals have left them, before the decisions that follow), `signed`, and `exception`.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import IO, Any

import numpy as np


class DecisionLog:
    """Lines in memory, in a file, or nowhere."""

    def __init__(self, folder: str | Path | None = None, agent: str = "", keep: bool = False) -> None:
        """A new file in `folder`, named after the agent (a number is added to a name that exists); `keep`: in memory
        as well."""
        self.lines: list[dict[str, Any]] = []
        self._keep = keep
        self._file: IO[str] | None = None
        self.path: Path | None = None
        if folder is not None:
            self._file, self.path = _new_file(Path(folder), agent.replace("@", "_at_") or "agent")

    @property
    def is_on(self) -> bool:
        """Whether anybody will read what is written."""
        return self._keep or self._file is not None

    def write(self, kind: str, **values: Any) -> None:
        """Add a line; a file has it at once, so that a world that dies has told everything."""
        line = {"kind": kind, **values}
        if self._keep:
            self.lines.append(line)
        if self._file is not None:
            self._file.write(json.dumps(line, default=_plain) + "\n")
            self._file.flush()

    def close(self) -> None:
        """No more lines in the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _new_file(folder: Path, name: str) -> tuple[IO[str], Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(1):
        path = folder / (f"{name}.jsonl" if number == 1 else f"{name}-{number}.jsonl")
        try:
            return path.open("x", encoding="utf-8"), path
        except FileExistsError:
            continue
    raise AssertionError("the numbers never end")


def _plain(value: Any) -> Any:
    """Numbers and arrays of numpy as plain ones."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no place in a decision log")
