"""How far a replay agrees with the world it repeats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from marlab.market.logs.worldlog import NONE
from marlab.market.vector.replay import OUTCOMES, Recorded, Replayed, fractional

SERIES = ("balance", "stock", "prices", "scores", "mornings")
TOLERANCE = 1e-6
"""Largest relative difference at which two numbers count as equal."""


@dataclass(frozen=True)
class Agreement:
    """One world, or many."""

    worlds: int = 0
    days: int = 0
    bankrupt: int = 0  # factories
    equal: int = 0  # worlds whose balances, stocks, prices and scores are equal on every day
    largest: dict[str, float] = field(default_factory=lambda: dict.fromkeys(SERIES, 0.0))
    contracts: int = 0  # negotiated
    same_contracts: int = 0
    more_contracts: int = 0  # that only the replay signed
    negotiations: int = 0
    same_ends: int = 0  # negotiations that ended in the same way, in the same round
    causes: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: Agreement) -> Agreement:
        counts = {
            name: getattr(self, name) + getattr(other, name) for name in vars(self) if name not in ("largest", "causes")
        }
        largest = {name: max(self.largest[name], other.largest[name]) for name in SERIES}
        return Agreement(**counts, largest=largest, causes=self.causes + other.causes)


def total(many: Iterable[Agreement]) -> Agreement:
    """All of them together."""
    return sum(many, Agreement())


def compare(world: Recorded, again: Replayed) -> Agreement:
    """A world beside its replay; negotiations are compared where the replay played them."""
    largest = {name: relative(getattr(world, name), _or(getattr(again, name), getattr(world, name))) for name in SERIES}
    same = max(largest.values()) <= TOLERANCE and bool((world.bankrupt == again.bankrupt).all())
    causes: Counter[str] = Counter()
    if not same:
        causes[_first_difference(world, again)] += 1
    result = Agreement(1, len(world.balance) - 1, int(world.bankrupt.sum()), int(same), largest, causes=causes)
    return result if again.ends is None else result + _talks(world, again)


def _or(ours: NDArray[np.float64] | None, theirs: NDArray[np.float64]) -> NDArray[np.float64]:
    """What the replay has, or nothing to compare."""
    return theirs if ours is None else ours


def relative(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The largest difference, relative to the larger of 1 and the value itself."""
    return float((np.abs(one - other) / np.maximum(1.0, np.abs(one))).max(initial=0.0))


def _first_difference(world: Recorded, again: Replayed) -> str:
    for day in range(len(world.balance)):
        for name in SERIES[:3]:
            if relative(getattr(world, name)[day], getattr(again, name)[day]) > TOLERANCE:
                return f"{world.world_id}: {name} differ first on the morning of day {day}"
    return f"{world.world_id}: the same on every morning, not in the end"


def _talks(world: Recorded, again: Replayed) -> Agreement:
    talks, signed, ends = world.tables["negotiations"], world.tables["contracts"], again.ends
    assert ends is not None
    mine = signed["negotiation"] != NONE
    n = signed["negotiation"][mine]
    pairs = (("units", "quantity"), ("price", "price"), ("delivery", "delivery"))
    same = np.all([ends[ours][n] == signed[theirs][mine] for ours, theirs in pairs], axis=0)
    # a negotiation that ran out of time is closed one step after its last round
    rounds = np.minimum(talks["rounds"], ends["rounds"].max(initial=0))
    ended = (ends["outcome"] == talks["outcome"]) & (ends["rounds"] == rounds)
    causes: Counter[str] = Counter()
    for i in np.flatnonzero(~ended):
        was, became = OUTCOMES[talks["outcome"][i]], OUTCOMES[ends["outcome"][i]]
        causes[f"{was} in the simulator, {became} in the replay" if was != became else f"{was} in another round"] += 1
    if again.unanswered:
        causes["an answer after the first round is missing in the log"] += again.unanswered
    odd = int(fractional(world).sum())
    if odd:
        causes["(agrees) an offer with a fraction, which ends a negotiation"] += odd
    return Agreement(
        contracts=len(n),
        same_contracts=int(same.sum()),
        more_contracts=int((ends["units"] > 0).sum() - same.sum()),
        negotiations=len(ended),
        same_ends=int(ended.sum()),
        causes=causes,
    )
