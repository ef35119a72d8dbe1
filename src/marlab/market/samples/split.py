"""Which worlds are for training, validation and test: one file, shared by L2 and L3, kept with the samples.

All agents of a world, and all worlds that repeat it with other random numbers, land on one side, so nothing learnt on
the training side has been seen on the other two.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from marlab.lab.errors import UserError
from marlab.lab.runs.files import read_json, write_json

SCHEMA = 1
FILE = "world_split.json"
SPLITS = ("train", "val", "test")
_KEPT = ("val_ratio", "test_ratio", "split_seed", "split_by")


@dataclass(frozen=True)
class SplitOptions:
    """How worlds are divided."""

    val_ratio: float = 0.10
    """Share of the worlds for validation, rounded down (but at least one if there are three)."""
    test_ratio: float = 0.05
    """Share of the worlds for the test, likewise; both ratios 0 mean no split."""
    split_seed: int = 42
    """Seed of the shuffle."""
    split_by: Literal["repeat", "market"] = "repeat"
    """What stays together: repeated runs of the same agents in the same market, or all worlds of a market."""

    def __post_init__(self) -> None:
        if not (self.val_ratio >= 0 and self.test_ratio >= 0 and self.val_ratio + self.test_ratio < 1):
            ratios = f"val_ratio is {self.val_ratio:g} and test_ratio is {self.test_ratio:g}"
            raise UserError(f"{ratios}, expected shares of at least 0 that leave worlds for training.")


Worlds = Mapping[str, str] | Iterable[str]
"""World ids; a mapping also says which group of worlds each belongs to."""


def split_worlds(worlds: Worlds, options: SplitOptions | None = None) -> dict[str, list[str]]:
    """{train, val, test} -> sorted worlds; the order and repetition of `worlds` do not matter, groups stay together."""
    options = options or SplitOptions()
    group_of = dict(worlds) if isinstance(worlds, Mapping) else {world: world for world in worlds}
    groups: dict[str, list[str]] = {}
    for world in sorted(group_of):
        groups.setdefault(group_of[world], []).append(world)
    units = list(groups.values())  # in the order of their first worlds
    random.Random(options.split_seed).shuffle(units)
    val, test = (_share(ratio, len(units)) for ratio in (options.val_ratio, options.test_ratio))
    parts = (units[val + test :], units[:val], units[val : val + test])
    return {name: sorted(world for unit in part for world in unit) for name, part in zip(SPLITS, parts)}


def _share(ratio: float, n: int) -> int:
    whole = math.floor(ratio * n + 1e-9)  # 0.29 * 100 is 28.999...
    return max(whole, 1) if ratio > 0 and n >= 3 else whole


def read_or_make_split(
    path: Path, source: str, worlds: Worlds, options: SplitOptions | None = None, shared: bool = False
) -> dict[str, list[str]]:
    """The split stored at `path` if it was made for the same data, else a new one, stored there.

    `source` names the folder that the logs came from; a file made for another folder is replaced, unless it is `shared`
    with other data sets: then only its worlds count. A file that lacks worlds found now, or was made with other ratios,
    is refused: a silent new split would move worlds from the test side to the training side.
    """
    options = options or SplitOptions()
    worlds = worlds if isinstance(worlds, Mapping) else list(worlds)
    if path.exists():
        stored = _read(path)
        if shared or stored["tournament_dir"] == source:
            _check_same(path, stored, set(worlds), options)
            return {name: list(stored["splits"][name]) for name in SPLITS}
    made = split_worlds(worlds, options)
    kept = {name: getattr(options, name) for name in _KEPT}
    write_json(path, {"schema": SCHEMA, "tournament_dir": source, **kept, "splits": made})
    return made


def _read(path: Path) -> dict[str, Any]:
    stored = read_json(path, lambda why: UserError(f"The world split cannot be read: {why}."))
    splits = stored.get("splits") if isinstance(stored, dict) else None
    if not isinstance(splits, dict) or set(splits) != set(SPLITS) or "tournament_dir" not in stored:
        raise UserError(f"{path} is not a world split: it must hold tournament_dir and splits {{train, val, test}}.")
    return stored


def _check_same(path: Path, stored: Mapping[str, Any], worlds: set[str], options: SplitOptions) -> None:
    for key in _KEPT:
        if key in stored and stored[key] != getattr(options, key):
            raise UserError(
                f"{path} was made with {key} {stored[key]}, asked is {getattr(options, key)}; Remove it for a new one."
            )
    new = worlds - {world for name in SPLITS for world in stored["splits"][name]}
    if new:
        raise UserError(
            f"{path} does not know {len(new)} of the worlds found now (such as {min(new)}); Remove it for a new one."
        )


def side_of(splits: Mapping[str, list[str]]) -> dict[str, str]:
    """World -> train, val or test."""
    return {world: name for name, worlds in splits.items() for world in worlds}
