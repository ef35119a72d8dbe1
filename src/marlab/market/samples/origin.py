"""What the samples of one list share: how they were made, and the days of the logs that they come from.

Records are handed around one by one, saved and loaded again. Whatever learns from them needs to know their options
(play must use the same ones) and the rewards of whole logs (a decision's return counts days on which nothing was
decided, too), so every record keeps a reference to the origin of its list.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marlab.lab.config import diff, to_dict
from marlab.lab.errors import UserError
from marlab.market.samples.dataset import Columns
from marlab.market.samples.options import SampleOptions, stored_options

NEAR = 11
"""Days of X_temporal that tell what a day is worth: the league delivers within ten."""
DAYS = ("log", "day", "reward", "x_static", "x_role", "x_temporal")
"""Columns of the days of logs."""


@dataclass(frozen=True, eq=False)
class Origin:
    """Shared by all records of a list."""

    options: SampleOptions | None = None
    """How they were made; None where nobody says."""
    days: Columns | None = None
    """The days of their logs by the names in DAYS, in order; None where they are not known."""

    @staticmethod
    def of(macro: Columns, options: SampleOptions | None) -> Origin:
        """Of tables of samples."""
        days = {name: macro[name] for name in DAYS}
        return Origin(options, {**days, "x_temporal": macro["x_temporal"][:, :NEAR]})

    def packed(self) -> Columns:
        """As arrays for a file."""
        made = {f"days_{name}": values for name, values in (self.days or {}).items()}
        if self.options is not None:
            made["sample_options"] = np.frombuffer(json.dumps(to_dict(self.options)).encode(), np.uint8)
        return made

    @staticmethod
    def unpacked(columns: Columns, where: str) -> Origin:
        """The inverse of `packed`; takes its columns out."""
        stored = columns.pop("sample_options", None)
        days = {name: columns.pop(f"days_{name}") for name in DAYS if f"days_{name}" in columns}
        options = None
        if stored is not None:
            try:
                told = json.loads(np.asarray(stored, np.uint8).tobytes())
            except (ValueError, TypeError, RecursionError):
                told = None
            options = stored_options(told, where) if isinstance(told, Mapping) else None
            if options is None:
                raise UserError(f"{where} does not say in a readable way how its samples were made.")
        if days and (len(days) < len(DAYS) or len({len(values) for values in days.values()}) > 1):
            raise UserError(f"{where} is damaged: its days of logs are not complete.")
        return Origin(options, days or None)


UNKNOWN = Origin()


def joined(origins: Iterable[Origin]) -> tuple[Origin, dict[int, int]]:
    """One origin of records from several lists, and for each of them (by id) the row at which its days begin."""
    distinct = list({id(origin): origin for origin in origins}.values())
    options = distinct[0].options
    for other in distinct[1:]:
        differ(options, other.options, "These samples were made in different ways")
    if any(origin.days is None for origin in distinct):
        return Origin(options), dict.fromkeys(map(id, distinct), 0)
    starts, rows, logs, parts = {}, 0, 0, []
    for origin in distinct:
        days: Any = origin.days
        starts[id(origin)] = rows
        parts.append({**days, "log": days["log"] + logs})
        rows += len(days["log"])
        logs += int(days["log"].max(initial=-1)) + 1
    if len(parts) == 1:
        return distinct[0], starts
    return Origin(options, {name: np.concatenate([part[name] for part in parts]) for name in DAYS}), starts


def differ(one: SampleOptions | None, other: SampleOptions | None, what: str) -> None:
    """Refuse options that are not the same."""
    changed = diff(to_dict(one) if one else {}, to_dict(other) if other else {})
    if changed:
        key, a, b = changed[0]
        raise UserError(f"{what}: {key} is {a!r} and {b!r}.")


def guessed_days(file: NDArray[np.integer], day: NDArray[np.integer], reward: NDArray[Any]) -> tuple[Columns, Any]:
    """Days of records that were made by hand, one for each log and day, and the row of each record's day.

    What the morning told is not known, and neither are days without a decision. Without a day there is no return.
    """
    pairs, first, rows = np.unique(np.stack([file, day]), axis=1, return_index=True, return_inverse=True)
    known = np.where(pairs[1] >= 0, np.asarray(reward, np.float32)[first], np.float32(np.nan))
    count = pairs.shape[1]
    empty = {
        "x_static": np.zeros((count, 12), np.float32),
        "x_role": np.zeros((count, 2), np.float32),
        "x_temporal": np.zeros((count, NEAR, 10), np.float32),
    }
    return {"log": pairs[0], "day": pairs[1], "reward": known, **empty}, rows.reshape(-1)
