"""Habits: the numbers behind rule W's sales, and how they lean on what a seller sees.

Rule W is written with fixed numbers: lots, prices, how long to wait. As habits they can be learnt, and most of them may
also depend on how full the coming days are, how late it is and how the partner has bargained so far. The usual habits
are the rule itself, decision for decision.

Letters: N factories, K selling threads of each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from marlab.lab.errors import UserError
from marlab.market.logs.daystate import Array, DayState
from marlab.market.rules.arrays import namespace
from marlab.market.rules.l1 import Issue
from marlab.market.rules.offers import ROUNDS
from marlab.market.rules.plan import Threads


class Number(NamedTuple):
    """One number: what the rule takes, how far a search strays from it, and its bounds."""

    usual: float
    spread: float
    least: float
    most: float


NUMBERS: dict[str, Number] = {
    # taking what a partner asks for
    "accept": Number(0.0, 0.2, -3, 3),  # what waiting is worth counts exp(this) times
    "shadow": Number(0.0, 0.2, -3, 3),  # a unit given away, as a share of the price range
    "least": Number(0.0, 0.3, -3, 3),  # the same as `accept` for own offers
    "taken": Number(0.3, 0.1, 0.02, 3),  # own offers to a stranger that are assumed taken,
    "offers": Number(6.0, 1.5, 1, 40),  # and made
    "few": Number(4.0, 1.5, 1, 30),  # with fewer offers heard, nothing is known
    "leaving": Number(0.0, 0.3, -3, 3),  # the chance of leaving counts exp(this) times
    # lots and prices for those who stay
    "large": Number(10.0, 1.0, 1, 12),
    "low_lot_1": Number(5.0, 1.0, 1, 10),
    "low_lot_2": Number(2.0, 0.8, 1, 10),
    "last_lot_1": Number(2.0, 0.8, 1, 10),
    "last_lot_2": Number(5.0, 1.0, 1, 10),
    "price_low": Number(0.0, 0.2, -1, 1),
    "price_early": Number(1.0, 0.2, 0, 2),
    "price_high": Number(1.0, 0.2, 0, 2),
    "yield_round": Number(10.0, 2.0, 0, 20),
    "patient_round": Number(3.0, 0.6, 0, 20),
    "seldom": Number(0.15, 0.05, 0.01, 0.9),
    # waiting for more, and strangers
    "hold_from": Number(2.0, 1.2, 0, 20),
    "cheap": Number(0.6, 0.15, 0, 1.2),
    "large_request": Number(8.0, 1.0, 1, 11),
    "small_request": Number(3.0, 1.0, 1, 10),
    "opening_request": Number(5.0, 1.0, 1, 10),
    "small_step": Number(1.0, 0.4, 0, 3),
    # days: below -1/2 the nearest, above 1/2 the fullest, else the next
    "day_high": Number(-1.0, 0.4, -2, 2),
    "day_early": Number(0.0, 0.4, -2, 2),
    "day_hasty": Number(1.0, 0.4, -2, 2),
}
OPTIONS: dict[str, Number] = {
    "opening_days": Number(3.0, 1.0, 0, 12),
    "small_lot": Number(3.0, 0.8, 1, 10),
    "small_price": Number(0.0, 0.2, -1, 1),
    "hold": Number(18.0, 2.0, 0, 20),
    "loss": Number(0.02, 0.02, 0, 0.5),
    "opening_lot_1": Number(7.0, 1.0, 1, 10),
    "opening_lot_2": Number(5.0, 1.0, 1, 10),
    "opening_lot_3": Number(3.0, 0.8, 1, 10),
    "opening_price_1": Number(1.0, 0.2, 0, 1),
    "opening_price_2": Number(0.5, 0.2, 0, 1),
    "opening_price_3": Number(0.0, 0.2, 0, 1),
}
"""The numbers among `bargain.RuleOptions`; three opening lots and prices."""
SIGHTS = {
    "near": 0.35, "used": 0.3, "far": 0.25, "gone": 0.3, "round": 0.28, "busy": 0.3, "margin": 0.25, "pays": 0.25,
    "takes": 0.15, "leaves": 0.25, "lot": 0.35,
}  # fmt: skip
"""What is seen, and how much it usually varies."""
OFFER = {"position": 0.35, "units": 0.3, "ahead": 0.3}
"""What is seen of an offer on the table."""
LEANINGS = {
    "shadow": 0.2, "price_patient": 0.2, "price_hasty": 0.2, "lot_patient": 1.0, "lot_hasty": 0.8, "hold": 3.0,
    "day_patient": 0.3, "day_hasty": 0.3,
}  # fmt: skip
"""What leans on what is seen, and how far a search strays."""


def _leaning(name: str, size: float) -> dict[str, Number]:
    seen = SIGHTS | (OFFER if name == "shadow" else {})
    spreads = {see: size * 0.5 / varies for see, varies in seen.items()}
    return {f"{name}.{see}": Number(0.0, spread, -8 * spread, 8 * spread) for see, spread in spreads.items()}


OWN = NUMBERS | {key: number for name, size in LEANINGS.items() for key, number in _leaning(name, size).items()}
ALL = OWN | OPTIONS
"""Every habit, in the order of a row."""
PLACE = {name: place for place, name in enumerate(ALL)}
USUAL = tuple(number.usual for number in ALL.values())
"""The row of the rule as it is written."""
POSITIONS = FIRST, MIDDLE, DIRECT = ("first", "middle", "direct")
"""Who has habits of his own: the first level, levels in the middle, and the first of two, which sells to the last one
directly. The last level sells to nobody."""
WORDS = {FIRST: "first level", MIDDLE: "middle levels", DIRECT: "first of two levels"}
KIND = "market/habits"


class Habits:
    """The rule's own numbers, or rows of learnt ones for many factories: [N, 1, H]."""

    def __init__(self, values: Array | None = None) -> None:
        self.values = values

    @property
    def learnt(self) -> bool:
        """Whether they may differ from the usual ones."""
        return self.values is not None

    def __getitem__(self, name: str) -> Any:
        """A number, or numbers [N, 1]."""
        return USUAL[PLACE[name]] if self.values is None else self.values[..., PLACE[name]]

    def leaning(self, name: str, seen: Array | None) -> Any:
        """By how much something changes [N, K] with what is `seen` [N, K, C]."""
        if self.values is None or seen is None:
            return 0.0
        first = PLACE[f"{name}.near"]
        return (seen * self.values[..., first : first + seen.shape[-1]]).sum(-1)


class Learnt(NamedTuple):
    """Learnt habits: a row for every position."""

    first: tuple[float, ...] = USUAL
    middle: tuple[float, ...] = USUAL
    direct: tuple[float, ...] = USUAL

    def to_json(self) -> dict[str, Any]:
        """What differs from the rule, by name."""
        rows = {place: dict(zip(ALL, getattr(self, place))) for place in POSITIONS}
        changed = {
            place: {name: round(value, 6) for name, value in row.items() if value != ALL[name].usual}
            for place, row in rows.items()
        }
        return {"kind": KIND, **changed}

    @staticmethod
    def from_json(table: Any, where: str) -> Learnt:
        """The inverse; what is not a table of habits is refused."""
        if not isinstance(table, Mapping) or table.get("kind") != KIND:
            raise UserError(f"{where} does not hold habits of the rule (kind {KIND}).")
        return Learnt(*(_row(table.get(place, {}), f"{place} of {where}") for place in POSITIONS))


def _row(changed: Any, where: str) -> tuple[float, ...]:
    if not isinstance(changed, Mapping):
        raise UserError(f"{where} is not a table of habits.")
    for name, value in changed.items():
        if name not in ALL:
            raise UserError(f"{where} has the habit {name!r}, which nobody knows.")
        number = ALL[name]
        known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not known or not number.least - 1e-6 <= value <= number.most + 1e-6:
            raise UserError(f"{where}: {name} is {value!r}, expected {number.least:g} to {number.most:g}.")
    return tuple(float(changed.get(name, number.usual)) for name, number in ALL.items())


def position_of(state: DayState) -> Array:
    """[...] the place in `POSITIONS`."""
    xp = namespace(state.day)
    return xp.where(state.can_buy, POSITIONS.index(MIDDLE), xp.where(state.n_products == 3, POSITIONS.index(DIRECT), 0))


def sights(state: DayState, threads: Threads, issue: Issue) -> Array:
    """[N, K, 11] what is seen in each selling thread, each about between -1 and 1."""
    xp, known = namespace(state.day), threads.records
    sold, lines = state.q_out, state.n_lines
    zero = xp.zeros_like(threads.round)

    def filled(first: int, last: int, middle: float) -> Array:
        share = sold[..., first:last].sum(-1) / ((last - first) * lines)
        return (xp.minimum(share, 1.0) - middle)[:, None] + zero

    offered, taken = known.offers + threads.offered, known.taken
    high, low = known.patient_highest, known.patient_lowest
    margin = (issue.price_min - state.production_cost) / xp.maximum(issue.price_max, 1.0) - 0.5
    lot = (known.taken_units + 3.0) / (taken + 0.3) / 10
    parts = [
        filled(0, 2, 0.5), filled(1, 6, 0.5), filled(6, 11, 0.25), (state.day / state.n_steps - 0.5)[:, None] + zero,
        threads.round / ROUNDS - 0.3, (1.0 * threads.there).sum(-1)[:, None] / 8 - 0.5 + zero, margin[:, None] + zero,
        high / (high + low + 1) - 0.25, (taken + 0.3) / (offered + 6) - 0.1,
        (known.left + 1) / (offered - taken + 2) - 0.3, xp.minimum(lot, 2.0) - 0.6,
    ]  # fmt: skip
    return xp.stack(parts)
