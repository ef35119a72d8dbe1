"""Metrics of a run: an append-only JSONL file as the source of truth, mirrored to TensorBoard.

One line per record, `{"step": 3, "time": 1.7e9, "loss/policy": 0.1}`. A line is written with a single append, so
a crash can only leave one broken line at the end. When a run resumes from step s, a line `{"resume": s}` is
appended; readers drop earlier records of later steps, which the resumed process writes again. Nothing is erased.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from marlab.lab.errors import UserError
from marlab.lab.runs.files import BINARY, append_to, end_broken_line, open_regular

BLOCK = 1 << 16  # bytes read at a time when a file is read from its end


class MetricsWriter:
    """Appends records to `metrics.jsonl` and, where tensorboard is installed, to event files under `tb`."""

    def __init__(self, path: Path, tb: Path | None = None, resume_step: int | None = None) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        end_broken_line(path)
        self._handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | BINARY, 0o644)
        self._tb_folder, self._purge_step = tb, resume_step
        self._tb: Any = None  # made at the first record: its import is slow
        if resume_step is not None:
            self._append({"resume": resume_step})

    def log(self, step: int, values: Mapping[str, Any]) -> None:
        """Record `values` (numbers, texts, None, or lists and tables of them) at `step`."""
        row = {"step": int(step), "time": round(time.time(), 3)}
        row.update({name: _jsonable(value) for name, value in values.items()})
        self._append(row)
        self._mirror(int(step), values)

    def _append(self, row: dict[str, Any]) -> None:
        append_to(self._handle, (json.dumps(row, ensure_ascii=False) + "\n").encode())

    def _mirror(self, step: int, values: Mapping[str, Any]) -> None:
        if self._tb_folder is None:
            return
        if self._tb is None:
            from torch.utils.tensorboard import SummaryWriter

            purge = None if self._purge_step is None else self._purge_step + 1
            self._tb = SummaryWriter(str(self._tb_folder), purge_step=purge)
        for name, value in values.items():
            if isinstance(value, bool | int | float):
                self._tb.add_scalar(name, float(value), step)

    def flush(self) -> None:
        os.fsync(self._handle)
        if self._tb is not None:
            self._tb.flush()

    def close(self) -> None:
        self.flush()
        os.close(self._handle)
        if self._tb is not None:
            self._tb.close()

    def __enter__(self) -> MetricsWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """All valid records in the order of their steps' last writing; replayed steps appear once."""
    rows: list[dict[str, Any]] = []
    if not path.exists():
        return rows
    with _open(path) as file:
        for line in file:
            row = _parse(line)
            if row is None:
                continue
            if "resume" in row:
                rows = [r for r in rows if r["step"] <= row["resume"]]
            else:
                rows.append(row)
    return rows


def tail_metrics(path: Path, count: int) -> list[dict[str, Any]]:
    """The last `count` valid records, read from the end of the file without loading the rest."""
    found: deque[dict[str, Any]] = deque()
    limit = math.inf  # steps beyond it were written again by a later process
    if path.exists():
        for line in _lines_backwards(path):
            row = _parse(line)
            if row is None:
                continue
            if "resume" in row:
                limit = min(limit, row["resume"])
            elif row["step"] <= limit:
                found.appendleft(row)
                if len(found) == count:
                    break
    return list(found)


def column(rows: list[dict[str, Any]], name: str) -> tuple[list[int], list[float]]:
    """(steps, values) of one metric, skipping records without it."""
    have = [r for r in rows if isinstance(r.get(name), int | float)]
    return [r["step"] for r in have], [float(r[name]) for r in have]


def _jsonable(value: Any) -> Any:
    """Strict JSON: infinities and NaN travel as texts, arrays and tensors of one value as numbers."""
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(k): _jsonable(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # "nan", "inf", "-inf"
    return value


_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def _parse(line: bytes) -> dict[str, Any] | None:
    """A record, or None for a line that a crash cut short."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict) or not isinstance(row.get("resume" if "resume" in row else "step"), int):
        return None
    return {k: _NOT_FINITE.get(v, v) if isinstance(v, str) else v for k, v in row.items()}


def _lines_backwards(path: Path) -> Iterator[bytes]:
    with _open(path) as file:
        position = file.seek(0, os.SEEK_END)
        rest = b""
        while position > 0:
            size = min(BLOCK, position)
            position = file.seek(position - size)
            lines = (file.read(size) + rest).split(b"\n")
            rest = lines[0]
            yield from (line for line in reversed(lines[1:]) if line)
        if rest:
            yield rest


def _open(path: Path) -> BinaryIO:
    try:
        return open_regular(path)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}).") from None
