"""Whether a folder of samples is whole: lengths, references and ranges, checked when it is opened.

A damaged column would otherwise be noticed hours later, by an index that is out of range or, worse, not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from marlab.lab.errors import UserError
from marlab.market.samples.options import Sizes, stored_options

if TYPE_CHECKING:
    from marlab.market.samples.dataset import Column, Columns

CHUNK = 1 << 22
"""Rows that are looked at at a time."""


def check_about(path: Path, about: Any, schema: int) -> tuple[Sizes, dict[str, Any], dict[str, int]]:
    """Sizes, options and logs per split of a `dataset.json`; anything else is refused."""
    found = about.get("schema") if isinstance(about, dict) else None
    if found != schema:
        raise UserError(f"{path} has schema {found}; this version reads schema {schema}: make the samples again.")
    options, sizes, splits = (about.get(key) for key in ("options", "sizes", "splits"))
    if not isinstance(options, dict) or not isinstance(sizes, dict) or not isinstance(splits, dict):
        raise UserError(f"The samples are damaged: {path} lacks sizes, options or splits.")
    known = stored_options(options, str(path))
    if known is None:
        raise UserError(f"The samples are damaged: {path} does not say which L1 rules and features they have.")
    if sizes != known.sizes._asdict():
        raise UserError(f"The samples are damaged: the sizes in {path} are not those of its options.")
    if not splits or not all(isinstance(n, int) and name in ("train", "val", "test") for name, n in splits.items()):
        raise UserError(f"The samples are damaged: {path} has splits {sorted(map(str, splits))[:5]}.")
    return known.sizes, options, splits


def check_tables(
    folder: Path, tables: Mapping[str, Columns], kinds: Mapping[str, Mapping[str, Column]], logs: int, horizon: int
) -> None:
    """Equal lengths in every table, rows that exist where other rows are named, numbers that mean something."""
    rows = {"logs": logs}
    for table in tables:
        lengths = {len(values) for values in tables[table].values()}
        if len(lengths) != 1:
            raise _damaged(folder, f"the columns of {table} are not equally long")
        rows[table] = lengths.pop()
    for table in kinds:
        for name, column in kinds[table].items():
            # an empty history may start behind the last offer
            beyond = 1 if column.refers in ("offers", "micro") else 0
            if column.refers:
                _within(folder, f"{table}.{name}", tables[table][name], 0, rows[column.refers] - 1 + beyond)
    micro, calls, macro = tables["micro"], tables["calls"], tables["macro"]
    ranges = {
        "op": 2, "role": 1, "time_label": horizon, "thread_day": horizon, "source": 1, "round": None,
        "negotiation": None, "history_length": None,
    }  # fmt: skip
    for name, most in ranges.items():
        _within(folder, f"micro.{name}", micro[name], 0, most)
    _within(folder, "calls.threads", calls["threads"], 0, None)
    _within(folder, "macro.day", macro["day"], 0, None)
    _ends(folder, "micro.history", micro["history"], micro["history_length"], rows["offers"])
    _ends(folder, "calls.first", calls["first"], calls["threads"], rows["micro"])
    if len(macro["log"]) and np.diff(macro["log"]).min(initial=0) < 0:
        raise _damaged(folder, "macro.log is not in order")
    delta = tables["offers"]["row"][:, 2]
    _within(folder, "offers.row", delta, 0, horizon)


def _within(folder: Path, name: str, values: NDArray[Any], least: int, most: int | None) -> None:
    for part in _parts(values):
        if not (part.min() >= least and (most is None or part.max() <= most)):  # also where a number is nan
            raise _damaged(folder, f"{name} holds {part.min()} to {part.max()}, expected {least} to {most or 'more'}")


def _ends(folder: Path, name: str, first: NDArray[Any], length: NDArray[Any], rows: int) -> None:
    for start, count in zip(_parts(first), _parts(length)):
        if (start + count.astype(np.int64)).max() > rows:
            raise _damaged(folder, f"{name} leads beyond the last row")


def _parts(values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    return (values[start : start + CHUNK] for start in range(0, len(values), CHUNK))


def _damaged(folder: Path, why: str) -> UserError:
    return UserError(f"The samples in {folder} are damaged: {why}; make them again.")
