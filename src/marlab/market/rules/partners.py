"""What a factory has learned about its partners, and the further features made of it.

Books are filled with negotiations that have ended and with public reports, always those of earlier days: the book of a
morning is the same in play and when it is rebuilt from a log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from marlab.market.logs.daystate import LINES, Array, DayState
from marlab.market.logs.worldlog import AGREED, NONE, AgentLog
from marlab.market.rules import records
from marlab.market.rules.arrays import namespace
from marlab.market.rules.l1 import Action, Bools
from marlab.market.rules.records import PARTNER_SIZE, Records

POOL_SIZE = PARTNER_SIZE + 1
NEEDS = 10.0
"""Open needs are divided by this; they come first among the extra features."""
EXTRA_SIZE = 33 + 2 * POOL_SIZE


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


class Talk(NamedTuple):
    """How a negotiation that has ended went."""

    partner: Hashable
    selling: bool
    heard: Sequence[Heard]  # the partner's offers
    offers: int  # mine
    taken: int  # units of mine that were taken
    left: bool  # the partner ended it instead of answering


class PartnerBook:
    """Records of all partners of one factory, found by name."""

    def __init__(self) -> None:
        """Start knowing nobody."""
        self._sides = _Side(), _Side()
        self._cash: dict[Hashable, deque[float]] = {}

    def add(self, ended: Ended) -> None:
        """Remember a negotiation of an earlier day."""
        self._sides[ended.selling].add(ended, self._cash)

    def add_talk(self, talk: Talk) -> None:
        """Remember how a negotiation of an earlier day went."""
        self._sides[talk.selling].add_talk(talk, self._cash)

    def add_report(self, partner: Hashable, cash: float) -> None:
        """Remember a partner's public report."""
        self._cash.setdefault(partner, deque(maxlen=2)).append(cash)
        for side in self._sides:
            side.changed(partner)

    def records(self, partners: Sequence[Hashable], selling: bool) -> Records:
        """What is known about some partners, in their order: [K]; nothing about strangers."""
        return self._sides[selling].of(partners, self._cash)

    def features(self, partners: Sequence[Hashable], selling: bool) -> Array:
        """[K, 10] statistics of some partners."""
        return records.features(self.records(partners, selling))

    def pooled(self, selling: bool, day: int) -> Array:
        """[11]: the mean over all partners met on a side, and the units a day they took lately, in tens."""
        return records.pooled(self._sides[selling].all(self._cash), day)


class _Side:
    """Buyers or sellers: rows of records, and what has not been written into them yet."""

    def __init__(self) -> None:
        self._rows: dict[Hashable, int] = {}
        self._records = records.empty((0,))
        self._ended: dict[int, Ended] = {}
        self._talks: dict[int, Talk] = {}
        self._reported: set[int] = set()
        self._asked: dict[tuple[Hashable, ...], Records] = {}

    def add(self, ended: Ended, cash: dict[Hashable, deque[float]]) -> None:
        row = self._row(ended.partner)
        if row in self._ended:
            self._write(cash)
        self._ended[row] = ended
        self._asked.clear()

    def add_talk(self, talk: Talk, cash: dict[Hashable, deque[float]]) -> None:
        row = self._row(talk.partner)
        if row in self._talks:
            self._write(cash)
        self._talks[row] = talk
        self._asked.clear()

    def changed(self, partner: Hashable) -> None:
        if partner in self._rows:
            self._reported.add(self._rows[partner])
            self._asked.clear()

    def of(self, partners: Sequence[Hashable], cash: dict[Hashable, deque[float]]) -> Records:
        names = tuple(partners)
        if names not in self._asked:
            rows = np.array([self._row(name) for name in names], np.intp)
            self._asked[names] = self.all(cash).take(rows)
        return self._asked[names]

    def all(self, cash: dict[Hashable, deque[float]]) -> Records:
        self._write(cash)
        return self._records

    def _row(self, partner: Hashable) -> int:
        if partner not in self._rows:
            self._rows[partner] = len(self._rows)
            self._reported.add(self._rows[partner])
        return self._rows[partner]

    def _write(self, cash: dict[Hashable, deque[float]]) -> None:
        """Bring the arrays up to date."""
        if len(self._rows) > len(self._records.units):
            more = records.empty((max(8, 2 * len(self._rows)) - len(self._records.units),))
            self._records = Records(*(np.concatenate(pair) for pair in zip(self._records, more)))
        size = len(self._records.units)
        if self._ended:
            there, columns = _filled(self._ended, size, lambda e: (e.day, *e[3:]))
            self._records = records.after_negotiations(self._records, there, *columns)
        if self._talks:
            there, (offers, taken, left) = _filled(self._talks, size, lambda t: (t.offers, t.taken, t.left))
            longest = max(len(talk.heard) for talk in self._talks.values())
            heard = np.full((3, size, longest), np.nan)
            for row, talk in self._talks.items():
                heard[:, row, : len(talk.heard)] = np.array(talk.heard, np.float64).reshape(-1, 3).T
            self._records = records.after_talks(self._records, there, Action(*heard), offers, taken, left > 0)
        for name, row in self._rows.items() if self._reported else ():
            if row in self._reported and name in cash:
                self._records.cash[row, 2 - len(cash[name]) :] = cash[name]
        self._ended, self._talks, self._reported = {}, {}, set()


def _filled(rows: dict[int, Any], size: int, values: Callable[[Any], tuple[float, ...]]) -> tuple[Bools, Array]:
    """Which of `size` rows are given, and their values as columns [V, size]."""
    there, some = np.zeros(size, bool), np.array([values(value) for value in rows.values()], np.float64)
    columns = np.zeros((some.shape[1], size))
    there[list(rows)], columns[:, list(rows)] = True, some.T
    return there, columns


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
    xp = namespace(state.day)
    lines = xp.maximum(1, state.n_lines)
    slots = xp.arange(11, state.day)
    sold = state.q_out[..., :11]
    if state.horizon < 10:
        sold = xp.cat([sold, xp.zeros((*state.day.shape, 10 - state.horizon), state.day)])
    left = (state.n_steps - state.day)[..., None]
    room = xp.where(slots < left, xp.clip(1 - sold / lines[..., None], 0, 1), 0.0)
    reach = state.exogenous_reach / (state.day + 1)[..., None]
    columns = [
        xp.maximum(0, state.needed_supplies) / NEEDS,
        xp.maximum(0, state.needed_sales) / NEEDS,
        xp.minimum(state.inventory_input / lines, 5),
        xp.clip((state.n_lines - state.inventory_input) / lines, -1, 1),
        state.inventory_input >= state.n_lines,
        *(room[..., slot] for slot in range(11)),
        xp.minimum(state.exogenous_in_quantity / lines, 3),
        xp.minimum(state.exogenous_out_quantity / lines, 3),
        xp.minimum(state.exogenous_in_mean / lines, 3),
        xp.minimum(state.exogenous_out_mean / lines, 3),
        *(reach[..., line] for line in range(LINES)),
        left[..., 0] / 100,
        state.storage_cost,
        state.shortfall_penalty,
    ]
    own = xp.stack(columns)
    return xp.cat([own, xp.expand(pooled, (*own.shape[:-1], 2 * POOL_SIZE))])
