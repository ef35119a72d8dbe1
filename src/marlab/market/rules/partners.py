"""What a factory has learned about its partners, and the further features made of it.

Books are filled with negotiations that have ended and with public reports, always those of earlier days: the book of a
morning is the same in play and when it is rebuilt from a log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from marlab.market.logs.daystate import LINES, Array, DayState
from marlab.market.logs.worldlog import AGREED, NONE, AgentLog

PARTNER_SIZE = 10
POOL_SIZE = PARTNER_SIZE + 1
NEEDS = 10.0
"""Open needs are divided by this; they come first among the extra features."""
EXTRA_SIZE = 33 + 2 * POOL_SIZE
PATIENT_ROUND = 3
"""An agreement from this round on shows patience; an earlier one tells nothing about it."""
PATIENT_MEAN = 10.0
RECENT_DAYS = 10
FIRST_ROUNDS = 4
"""Whoever is still there after these rounds leaves less often."""
RARELY = 0.03
"""Whoever leaves in a smaller share of later rounds stays."""


class Heard(NamedTuple):
    """An offer that a partner made on an earlier day."""

    quantity: float
    position: float  # of the price in its issue: 0 lowest, 1 highest
    ahead: float  # days to delivery


class Ended(NamedTuple):
    """A negotiation that has ended, as one of its parties remembers it; quantity 0 = no agreement."""

    day: int
    partner: Hashable
    selling: bool
    rounds: int
    quantity: int
    price: int
    price_min: int
    price_max: int


@dataclass
class Record:
    """One partner on one side of the market."""

    negotiations: int = 0
    agreements: int = 0
    at_highest: int = 0  # agreements at the highest price of the issue
    at_lowest: int = 0
    patient_highest: int = 0  # the same, of agreements in round 3 or later
    patient_lowest: int = 0
    largest_lot: int = 0
    last_lot: int = 0
    units: int = 0
    failures_in_a_row: int = 0
    lasted: deque[int] = field(default_factory=lambda: deque(maxlen=5))  # rounds of recent negotiations
    patience: deque[int] = field(default_factory=lambda: deque(maxlen=5))
    bought: deque[tuple[int, int]] = field(default_factory=deque)  # (day, units) of the last days
    heard: deque[Heard] = field(default_factory=lambda: deque(maxlen=160))  # its recent offers
    offers: int = 0  # mine
    taken: int = 0  # of mine
    taken_units: int = 0
    left: int = 0  # negotiations that it ended instead of answering
    late_offers: int = 0  # mine after the first rounds
    late_left: int = 0

    @property
    def is_patient(self) -> bool:
        """Whether it usually keeps answering."""
        return bool(self.patience) and sum(self.patience) / len(self.patience) >= PATIENT_MEAN

    def add(self, ended: Ended) -> None:
        """Remember one more negotiation."""
        self.negotiations += 1
        self.lasted.append(ended.rounds)
        if ended.quantity <= 0:
            self.failures_in_a_row += 1
            self.patience.append(ended.rounds)
            return
        late = ended.rounds >= PATIENT_ROUND
        highest, lowest = ended.price >= ended.price_max, ended.price <= ended.price_min
        self.agreements += 1
        self.failures_in_a_row = 0
        self.at_highest += highest
        self.at_lowest += lowest
        self.patient_highest += highest and late
        self.patient_lowest += lowest and late
        self.largest_lot = max(self.largest_lot, ended.quantity)
        self.last_lot = ended.quantity
        self.units += ended.quantity
        self.bought.append((ended.day, ended.quantity))
        if late:
            self.patience.append(ended.rounds + 8)

    @property
    def only_today(self) -> bool:
        """Whether all its offers are for the same day."""
        return bool(self.heard) and all(offer.ahead == 0 for offer in self.heard)

    @property
    def leaving(self) -> float:
        """Chance that it ends a negotiation when it does not take an offer; one half for a stranger."""
        return (self.left + 1) / (self.offers - self.taken + 2)

    @property
    def stays(self) -> bool:
        """Whether it is not known to leave after the first rounds."""
        return self.late_left <= RARELY * max(10, self.late_offers)

    def bargained(self, heard: Iterable[Heard], offers: int, taken: int, left: bool) -> None:
        """Remember how a negotiation went: its offers, the number of mine, units of mine that it took, whether it
        left."""
        self.heard.extend(heard)
        self.offers += offers
        self.late_offers += max(0, offers - FIRST_ROUNDS)
        self.taken += taken > 0
        self.taken_units += taken
        self.left += left
        self.late_left += left and offers > FIRST_ROUNDS

    def recent_units(self, day: int) -> int:
        """Units agreed in the last ten days before `day`."""
        while self.bought and self.bought[0][0] < day - RECENT_DAYS:
            self.bought.popleft()
        return sum(units for _, units in self.bought)


class PartnerBook:
    """Records of all partners of one factory."""

    def __init__(self) -> None:
        """Start knowing nobody."""
        self._records: dict[tuple[Hashable, bool], Record] = {}
        self._cash: dict[Hashable, deque[float]] = {}

    def add(self, ended: Ended) -> None:
        """Remember a negotiation of an earlier day."""
        self.record(ended.partner, ended.selling).add(ended)

    def add_report(self, partner: Hashable, cash: float) -> None:
        """Remember a partner's public report."""
        self._cash.setdefault(partner, deque(maxlen=2)).append(cash)

    def record(self, partner: Hashable, selling: bool) -> Record:
        """The record of a partner; an empty one for a stranger."""
        return self._records.setdefault((partner, selling), Record())

    def features(self, partner: Hashable, selling: bool) -> Array:
        """[10]: how long it lasts, how often and at which prices it agrees, lots, units, failures, cash, known."""
        record = self.record(partner, selling)
        agreed = max(1, record.agreements)
        return np.array(
            [
                sum(record.lasted) / max(1, len(record.lasted)) / 20,
                record.agreements / max(1, record.negotiations),
                record.at_highest / agreed,
                record.at_lowest / agreed,
                min(record.largest_lot / 10, 3),
                min(record.last_lot / 10, 3),
                min(record.units / 100, 5),
                min(record.failures_in_a_row / 10, 1),
                self._cash_trend(partner),
                record.negotiations > 0,
            ],
            dtype=np.float64,
        )

    def pooled(self, selling: bool, day: int) -> Array:
        """[11]: the mean over all partners met on a side, and the units a day they took lately, in tens."""
        met = [partner for partner, side in self._records if side == selling]
        if not met:
            return np.zeros(POOL_SIZE)
        mean = np.mean([self.features(partner, selling) for partner in met], 0)
        recent = sum(self.record(partner, selling).recent_units(day) for partner in met)
        days = min(max(day, 1), RECENT_DAYS)
        return np.append(mean, min(recent / days / 10, 3))

    def _cash_trend(self, partner: Hashable) -> float:
        cash = self._cash.get(partner)
        if cash is None or len(cash) < 2:
            return 0.0
        before, now = cash
        return float(np.clip((now - before) / max(1.0, abs(before)), -1, 1))


def ended_in(log: AgentLog) -> Iterator[Ended]:
    """The negotiations of a logged agent, in order of days; partners are agent numbers."""
    table, contracts = log.negotiations, log.contracts
    lot = np.zeros((len(table["day"]), 2), dtype=np.int64)
    negotiated = contracts["negotiation"] != NONE
    lot[contracts["negotiation"][negotiated]] = np.stack([contracts["quantity"], contracts["price"]], -1)[negotiated]
    selling, buying = table["seller"] == log.index, table["buyer"] == log.index
    mine = np.flatnonzero(selling | buying)
    for i in mine[np.argsort(table["day"][mine], kind="stable")]:
        quantity, price = lot[i] if table["outcome"][i] == AGREED else (0, 0)
        partner = table["buyer"][i] if selling[i] else table["seller"][i]
        bounds = int(table["price_min"][i]), int(table["price_max"][i])
        yield Ended(
            int(table["day"][i]), int(partner), bool(selling[i]), int(table["rounds"][i]), int(quantity), int(price),
            *bounds,
        )  # fmt: skip


def books_of(log: AgentLog) -> Iterator[PartnerBook]:
    """The book of each morning of a log, in order; it is one book that grows, so use it before asking for the next."""
    book = PartnerBook()
    ended = list(ended_in(log))
    reports = sorted(zip(log.reports["day"], log.reports["agent"], log.reports["cash"]))
    e = r = 0
    for day in log.days.day:
        while e < len(ended) and ended[e].day < day:
            book.add(ended[e])
            e += 1
        while r < len(reports) and reports[r][0] < day:
            book.add_report(int(reports[r][1]), float(reports[r][2]))
            r += 1
        yield book


def pooled_features(books: Iterable[tuple[PartnerBook, int]]) -> Array:
    """[N, 22] of N mornings: partners sold to, then partners bought from, pooled."""
    return np.array([np.concatenate([book.pooled(True, day), book.pooled(False, day)]) for book, day in books])


def extra_features(state: DayState, pooled: Array) -> Array:
    """[..., 55]: open needs, stock, room by delivery day, exogenous quantities and their spread, rates, and statistics
    of consumers and suppliers [..., 22].
    """
    lines = np.maximum(1, state.n_lines)
    slots = np.arange(11)
    sold = np.zeros((*state.day.shape, 11))
    reach = min(11, state.horizon + 1)
    sold[..., :reach] = state.q_out[..., :reach]
    left = (state.n_steps - state.day)[..., None]
    room = np.where(slots < left, np.clip(1 - sold / lines[..., None], 0, 1), 0)
    columns = [
        np.maximum(0, state.needed_supplies) / NEEDS,
        np.maximum(0, state.needed_sales) / NEEDS,
        np.minimum(state.inventory_input / lines, 5),
        np.clip((state.n_lines - state.inventory_input) / lines, -1, 1),
        state.inventory_input >= state.n_lines,
        *np.moveaxis(room, -1, 0),
        np.minimum(state.exogenous_in_quantity / lines, 3),
        np.minimum(state.exogenous_out_quantity / lines, 3),
        np.minimum(state.exogenous_in_mean / lines, 3),
        np.minimum(state.exogenous_out_mean / lines, 3),
        *np.moveaxis(state.exogenous_reach / (state.day + 1)[..., None], -1, 0)[:LINES],
        left[..., 0] / 100,
        state.storage_cost,
        state.shortfall_penalty,
    ]
    own = np.stack(np.broadcast_arrays(*columns), -1).astype(np.float64)
    return np.concatenate([own, np.broadcast_to(pooled, (*own.shape[:-1], 2 * POOL_SIZE))], -1)
