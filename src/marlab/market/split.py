"""Which worlds are for training, validation and test: one file, shared by L2 and L3, kept with the samples.

The unit is the world (or the configuration it repeats): all agents of a world land on one side, so nothing learnt on
the training side has been seen on the other two.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marlab.lab.errors import UserError
from marlab.lab.files import read_json, write_json

SCHEMA = 1
FILE = "world_split.json"
SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class SplitOptions:
    """How worlds are divided."""

    val_ratio: float = 0.10
    """Share of the worlds for validation, rounded down (but at least one if there are three)."""
    test_ratio: float = 0.05
    """Share of the worlds for the test, likewise; both ratios 0 mean no split."""
    split_seed: int = 42
    """Seed of the shuffle."""

    def __post_init__(self) -> None:
        if not (self.val_ratio >= 0 and self.test_ratio >= 0 and self.val_ratio + self.test_ratio < 1):
            told = f"val_ratio is {self.val_ratio:g} and test_ratio is {self.test_ratio:g}"
            raise UserError(f"{told}, expected shares of at least 0 that leave worlds for training.")


def split_worlds(worlds: Iterable[str], options: SplitOptions | None = None) -> dict[str, list[str]]:
    """{train, val, test} -> sorted units; the order and repetition of `worlds` do not matter."""
    options = options or SplitOptions()
    units = sorted(set(worlds))
    random.Random(options.split_seed).shuffle(units)
    val, test = (_share(ratio, len(units)) for ratio in (options.val_ratio, options.test_ratio))
    parts = (units[val + test :], units[:val], units[val : val + test])
    return {name: sorted(part) for name, part in zip(SPLITS, parts)}


def _share(ratio: float, n: int) -> int:
    whole = math.floor(ratio * n + 1e-9)  # 0.29 * 100 is 28.999...
    return max(whole, 1) if ratio > 0 and n >= 3 else whole


def read_or_make_split(
    path: Path, source: str, worlds: Iterable[str], options: SplitOptions | None = None, regen: bool = False
) -> dict[str, list[str]]:
    """The split stored at `path` if it was made for the same data, else a new one, stored there.

    `source` names the folder that the logs came from; a file made for another folder is replaced. A file for the same
    folder that lacks worlds found now, or was made with other ratios, is refused unless `regen`: a silent new split
    would move worlds from the test side to the training side.
    """
    options = options or SplitOptions()
    units = set(worlds)
    if path.exists() and not regen:
        stored = _read(path)
        if stored["tournament_dir"] == source:
            _check_same(path, stored, units, options)
            return {name: list(stored["splits"][name]) for name in SPLITS}
    made = split_worlds(units, options)
    ratios = {"val_ratio": options.val_ratio, "test_ratio": options.test_ratio, "split_seed": options.split_seed}
    write_json(path, {"schema": SCHEMA, "tournament_dir": source, **ratios, "splits": made})
    return made


def _read(path: Path) -> dict[str, Any]:
    stored = read_json(path, lambda why: UserError(f"The world split cannot be read: {why}."))
    splits = stored.get("splits") if isinstance(stored, dict) else None
    if not isinstance(splits, dict) or set(splits) != set(SPLITS) or "tournament_dir" not in stored:
        raise UserError(f"{path} is not a world split: it must hold tournament_dir and splits {{train, val, test}}.")
    return stored


def _check_same(path: Path, stored: Mapping[str, Any], units: set[str], options: SplitOptions) -> None:
    for key in ("val_ratio", "test_ratio", "split_seed"):
        if key in stored and stored[key] != getattr(options, key):
            raise UserError(
                f"{path} was made with {key} {stored[key]}, asked is {getattr(options, key)};"
                " --regen-split makes a new one."
            )
    new = units - {unit for name in SPLITS for unit in stored["splits"][name]}
    if new:
        raise UserError(
            f"{path} does not know {len(new)} of the worlds found now (such as {min(new)});"
            " --regen-split makes a new one."
        )


def side_of(splits: Mapping[str, list[str]]) -> dict[str, str]:
    """Unit -> train, val or test."""
    return {unit: name for name, units in splits.items() for unit in units}
