"""What a tournament says: scores averaged per config, differences paired within configs and tested over configs.

Worlds of one config share their market and their neighbours, so they are no independent samples: every mean here is
first taken inside a config, and intervals are over configs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marlab.lab.stats import bootstrap, confidence_sequence, student
from marlab.market.simulator.seating import POSITIONS

Seat = dict[str, Any]
"""One tested factory of one world: the record of `world.measured_world` with `config`, `turn` and `world_id`."""


@dataclass(frozen=True)
class Comparison:
    """An agent minus the baseline. Intervals are None while there is only one config."""

    agent: str
    against: str
    differences: tuple[float, ...]  # of the mean score, one per config
    mean: float
    bootstrap: tuple[float, float] | None  # 95 %, paired, over configs
    student: tuple[float, float] | None  # 95 %
    sequence: tuple[float, float] | None  # valid at every look, at the level that was asked for
    money: float  # mean difference of final balances
    wins: float  # share of configs in which the agent is ahead
    pair_wins: float | None  # share of seats in which it is ahead (design seats)
    pairs: int
    by_position: dict[str, tuple[float, float | None, int]]  # mean, half of Student's interval, configs

    @property
    def decided(self) -> bool:
        """Whether the confidence sequence leaves out zero."""
        return self.sequence is not None and not self.sequence[0] <= 0 <= self.sequence[1]


def means_by_config(seats: Iterable[Seat], agent: str, key: str = "score") -> dict[int, float]:
    """Mean of a measurement over an agent's seats of each config."""
    scores: dict[int, list[float]] = defaultdict(list)
    for seat in seats:
        if seat["agent"] == agent:
            scores[seat["config"]].append(float(seat[key]))
    return {config: float(np.mean(values)) for config, values in sorted(scores.items())}


def score_interval(seats: Sequence[Seat], agent: str) -> tuple[float, tuple[float, float] | None]:
    """Mean score over configs and its bootstrap interval."""
    values = list(means_by_config(seats, agent).values())
    return float(np.mean(values)), bootstrap(values)


def compare(seats: Sequence[Seat], agents: Sequence[str], against: str, alpha: float, paired: bool) -> list[Comparison]:
    """Every agent minus the baseline. `paired`: seats are played in turn by all, so they pair one by one."""
    others = [name for name in agents if name != against]
    own: dict[str, list[Seat]] = defaultdict(list)
    for seat in seats:
        own[seat["agent"]].append(seat)
    return [_compare(own, name, against, alpha / max(1, len(others)), paired) for name in others if own[name]]


def _compare(own: Mapping[str, list[Seat]], agent: str, against: str, alpha: float, paired: bool) -> Comparison:
    mine, theirs = own[agent], own[against]
    differences = _differences(mine, theirs, agent, against)
    pairs = _pairs(mine, theirs) if paired else []
    money = _differences(_with_money(mine), _with_money(theirs), agent, against, "money")
    by_position = {}
    for place in POSITIONS:
        here, there = ([s for s in group if s["position"] == place] for group in (mine, theirs))
        gaps = _differences(here, there, agent, against)
        if gaps:
            interval = student(gaps)
            by_position[place] = (
                float(np.mean(gaps)),
                None if interval is None else (interval[1] - interval[0]) / 2,
                len(gaps),
            )
    return Comparison(
        agent, against, tuple(differences), mean=float(np.mean(differences)), bootstrap=bootstrap(differences),
        student=student(differences), sequence=confidence_sequence(differences, alpha), money=float(np.mean(money)),
        wins=_share([d > 0 for d in differences]), pairs=len(pairs), by_position=by_position,
        pair_wins=_share([a["score"] > b["score"] for a, b in pairs]) if pairs else None,
    )  # fmt: skip


def _with_money(seats: Sequence[Seat]) -> list[Seat]:
    return [{**seat, "money": (seat["score"] - 1) * seat["opening"]} for seat in seats]


def _differences(
    mine: Sequence[Seat], theirs: Sequence[Seat], agent: str, against: str, key: str = "score"
) -> list[float]:
    """One per config in which both have played."""
    a, b = means_by_config(mine, agent, key), means_by_config(theirs, against, key)
    return [a[config] - b[config] for config in a if config in b]


def _pairs(mine: Sequence[Seat], theirs: Sequence[Seat]) -> list[tuple[Seat, Seat]]:
    there = {_seat_key(seat): seat for seat in theirs}
    return [(seat, there[_seat_key(seat)]) for seat in mine if _seat_key(seat) in there]


def _seat_key(seat: Seat) -> tuple[int, int, int]:
    return seat["config"], seat["turn"], seat["place"]


def _share(hits: Sequence[bool]) -> float:
    return float(np.mean(hits)) if len(hits) else math.nan


def best_shares(seats: Sequence[Seat], agents: Sequence[str]) -> dict[str, float]:
    """Share of configs in which an agent has the highest mean of all."""
    table = {name: means_by_config(seats, name) for name in agents}
    configs = sorted({config for means in table.values() for config in means})
    best = [max((n for n in agents if c in table[n]), key=lambda n: table[n][c]) for c in configs]
    return {name: _share([winner == name for winner in best]) for name in agents}


def closed(seats: Sequence[Seat], bound: str) -> float:
    """Share of (bound - no trade) that the scores reach; sums, so that a seat with nothing to gain cannot explode."""
    room = sum(seat[bound] - seat["no_trade"] for seat in seats)
    return sum(seat["score"] - seat["no_trade"] for seat in seats) / room if room > 1e-9 else math.nan


def grouped(seats: Iterable[Seat], *keys: str) -> dict[tuple[Any, ...], list[Seat]]:
    """Seats by the values of some keys."""
    groups: dict[tuple[Any, ...], list[Seat]] = defaultdict(list)
    for seat in seats:
        groups[tuple(seat[key] for key in keys)].append(seat)
    return dict(groups)


def mean_of(seats: Sequence[Seat], key: str) -> float:
    """Mean of a measurement over the seats that have it; NaN if none has."""
    values: NDArray[Any] = np.array([float(seat[key]) for seat in seats if seat.get(key) is not None])
    return float(values.mean()) if len(values) else math.nan
