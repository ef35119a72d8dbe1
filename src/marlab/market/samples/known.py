"""What an agent knew at each of its joint decisions, rebuilt from its log: offers, deals signed, histories.

Letters: D days of the log, C joint decisions ("calls"), M decisions in single negotiations, R offers.
A call knows the offers it answers; the agent's own answers are known from the next call on. Deals count from the
moment they are signed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marlab.market.logs.daystate import Array, DayState
from marlab.market.logs.worldlog import NONE, REJECT, AgentLog, Table
from marlab.market.rules.offers import ROUNDS, Offers
from marlab.market.rules.partners import PARTNER_SIZE, books_of, extra_features

Index = NDArray[np.int64]


@dataclass(frozen=True)
class LogDecisions:
    """An agent's decisions in the order of its calls; one whose day has no record is left out."""

    table: Table  # columns of `decisions`, [M]
    day: Index  # [M] row of `days`
    call: Index  # [M] row of calls
    selling: NDArray[np.bool_]  # [M]
    first: Index  # [C] its first decision
    call_day: Index  # [C] row of `days`
    call_seq: Index  # [C]

    @property
    def has_offer(self) -> NDArray[np.bool_]:
        """[M] whether the partner's offer is on the table."""
        return self.table["received_quantity"] != NONE

    @property
    def answers(self) -> NDArray[np.bool_]:
        """[M] whether the agent made an own offer."""
        return self.table["op"] == REJECT


def decisions_of(log: AgentLog) -> LogDecisions:
    """The decisions of a log with what they belong to."""
    negotiation = log.negotiations
    number = log.decisions["negotiation"].astype(np.int64)
    row = rows_of_days(log.days, negotiation["day"][number])
    order = np.lexsort((log.decisions["seq"], log.decisions["call"], row))
    order = order[row[order] >= 0]
    table = {name: values[order] for name, values in log.decisions.items()}
    row, number = row[order], number[order]
    starts = np.ones(len(order), bool)
    starts[1:] = (np.diff(table["call"]) != 0) | (np.diff(row) != 0)
    first = np.flatnonzero(starts)
    call_seq = np.minimum.reduceat(table["seq"].astype(np.int64), first) if len(first) else np.zeros(0, np.int64)
    selling = negotiation["seller"][number] == log.index
    return LogDecisions(table, row, np.cumsum(starts) - 1, selling, first, row[first], call_seq)


def rows_of_days(days: DayState, wanted: NDArray[np.integer]) -> Index:
    """The row of each wanted day, -1 if the log has no record of it; days are in order."""
    at = np.minimum(np.searchsorted(days.day, wanted), len(days) - 1)
    return np.where(days.day[at] == wanted, at, -1).astype(np.int64) if len(days) else np.full(len(wanted), -1)


class Deals(NamedTuple):
    """Contracts negotiated and signed by the agent, flat: each [K]."""

    day: Index  # row of `days`
    seq: Index
    selling: NDArray[np.bool_]
    delta: Array
    quantity: Array
    price: Array


def deals_of(log: AgentLog) -> Deals:
    """The agent's own deals, without exogenous contracts and without those of days that have no record."""
    c = log.contracts
    row = rows_of_days(log.days, c["day"])
    kept = (c["negotiation"] != NONE) & (row >= 0)
    delta = np.maximum(0, c["delivery"].astype(np.float64) - c["day"])[kept]
    numbers = (c[name][kept].astype(np.float64) for name in ("quantity", "price"))
    return Deals(row[kept], c["seq"][kept].astype(np.int64), (c["seller"] == log.index)[kept], delta, *numbers)


class Signed(NamedTuple):
    """Deals of the day signed before each call, by delivery slot: each [C, H+1], in the order of `with_signed`."""

    q_in: Array
    pay: Array
    q_out: Array
    receive: Array


def signed_before(calls: LogDecisions, deals: Deals, horizon: int) -> Signed:
    """Running sums over the calls of a day."""
    n = len(calls.first)
    added = np.zeros((4, n + 1, horizon + 1))
    # the first call of the same day that comes after the signature; n where there is none
    after = np.searchsorted(_moment(calls.call_day, calls.call_seq), _moment(deals.day, deals.seq), side="right")
    counts = (after < n) & (np.append(calls.call_day, -1)[after] == deals.day)
    slot = np.minimum(deals.delta, horizon).astype(np.intp)
    for side in (False, True):
        here = counts & (deals.selling == side)
        cell = after[here], slot[here]
        np.add.at(added[2 * side], cell, deals.quantity[here])
        np.add.at(added[2 * side + 1], cell, (deals.quantity * deals.price)[here])
    total = np.cumsum(added[:, :n], 1)
    first = np.searchsorted(calls.call_day, calls.call_day)  # of the same day
    before_day = (total - added[:, :n])[:, first]
    return Signed(*(total - before_day))


def _moment(day: Index, seq: Index) -> Index:
    """One number that orders (day, seq)."""
    return (day.astype(np.int64) << 32) + seq


@dataclass(frozen=True)
class History:
    """Offers of all negotiations, each negotiation's in order, and the part of them that each decision knows."""

    quantity: Array  # [R]
    price: Array
    delivery: Array  # absolute day
    mine: NDArray[np.bool_]
    decision: Index  # [R] the decision that made or answered it
    start: Index  # [M] first offer of the decision's negotiation
    length: Index  # [M] offers of the negotiation before the decision, the one on the table included

    @property
    def latest(self) -> Index:
        """[M] the last offer before the decision, -1 if there is none."""
        return np.where(self.length > 0, self.start + self.length - 1, -1)


def history_of(decisions: LogDecisions) -> History:
    """Every decision adds the offer it answers and, if it rejects, the agent's own one."""
    table, received, own = decisions.table, decisions.has_offer, decisions.answers
    order = np.lexsort((np.arange(len(received)), table["negotiation"]))
    count = (received.astype(np.int64) + own)[order]
    begins = np.cumsum(count) - count  # of each decision's own rows
    is_first = np.diff(table["negotiation"][order], prepend=-1) != 0
    start = begins[np.flatnonzero(is_first)][np.cumsum(is_first) - 1] if len(order) else begins
    rows = int(count.sum())
    columns = {name: np.zeros(rows) for name in ("quantity", "price", "day")}
    decision, mine = np.zeros(rows, np.int64), np.zeros(rows, bool)
    for has, prefix, shift in ((received[order], "received_", 0), (own[order], "", received[order])):
        at = (begins + shift)[has]
        for name in columns:
            columns[name][at] = table[prefix + name][order][has]
        decision[at], mine[at] = order[has], prefix == ""
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    length = begins + received[order] - start
    return History(columns["quantity"], columns["price"], columns["day"], mine, decision, start[back], length[back])


class Known:
    """Offers in the order in which the agent came to know them, day after day, so that what is known is a range."""

    def __init__(self, log: AgentLog, decisions: LogDecisions, history: History) -> None:
        of = history.decision
        day = decisions.day[of]
        since = decisions.call[of] + history.mine  # an own offer is known from the next call on
        order = np.lexsort((np.arange(len(of)), since, day))
        self._day, self._since = day[order], since[order]
        self._columns = [
            decisions.selling[of][order].astype(np.intp),
            history.delivery[order],
            history.quantity[order],
            history.price[order],
            decisions.table["round"][of][order].astype(np.float64),
        ]
        self._today = log.days.day
        self._starts = np.searchsorted(self._day, np.arange(len(log.days) + 1))  # [D + 1] first offer of each day
        follows = np.diff(log.days.day, prepend=-np.inf) == 1
        row = np.arange(len(log.days))
        self._yesterday = np.where(follows, self._starts[np.maximum(row - 1, 0)], self._starts[row])  # [D]

    def of_yesterday(self) -> Offers:
        """What L2 may see in the morning: rows are days."""
        rows = np.arange(len(self._today))
        return self._offers(rows, self._yesterday, self._starts[:-1])

    def of_whole_day(self, rows: Index) -> Offers:
        """All offers of the day, also later ones: for labels, and for comparisons with leaky features."""
        return self._offers(rows, self._starts[rows], self._starts[rows + 1])

    def before_calls(self, decisions: LogDecisions) -> Offers:
        """Yesterday's offers and today's so far: rows are calls."""
        day, call = decisions.call_day, np.arange(len(decisions.call_day))
        until = np.searchsorted(_moment(self._day, self._since), _moment(day, call), side="right")
        return self._offers(day, self._yesterday[day], until)

    def _offers(self, days: Index, starts: Index, ends: Index) -> Offers:
        """The offers of a range for each of some rows, which belong to given days."""
        length = ends - starts
        row = np.repeat(np.arange(len(days)), length)
        at = np.arange(len(row)) - np.repeat(np.cumsum(length) - length - starts, length)
        side, delivery, quantity, price, rounds = (column[at] for column in self._columns)
        today = days[row]
        clock = np.where(self._day[at] == today, rounds, rounds - ROUNDS)
        return Offers(row, side, delivery - self._today[today], quantity, price, clock)


def morning_features(log: AgentLog, decisions: LogDecisions) -> tuple[Array, Array]:
    """What the factory knew about its partners (option `extra`): [D, 55] each morning, [M, 10] of each decision's
    partner."""
    table, number = log.negotiations, decisions.table["negotiation"].astype(np.int64)
    partner = np.where(decisions.selling, table["buyer"][number], table["seller"][number]).astype(np.int64)
    of_partner = np.zeros((len(partner), PARTNER_SIZE))
    pooled = []
    ends = np.searchsorted(decisions.day, np.arange(len(log.days) + 1))  # decisions are in the order of days
    for day, book in enumerate(books_of(log)):  # one growing book: it must be read before the next morning
        today = int(log.days.day[day])
        pooled.append(np.concatenate([book.pooled(True, today), book.pooled(False, today)]))
        rows = slice(ends[day], ends[day + 1])
        for selling in (False, True):
            here = ends[day] + np.flatnonzero(decisions.selling[rows] == selling)
            partners, of = np.unique(partner[here], return_inverse=True)
            if len(partners):
                of_partner[here] = book.features(partners.tolist(), selling)[of]
    return extra_features(log.days, np.stack(pooled)), of_partner
