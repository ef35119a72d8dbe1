"""What a playing agent believes about its partners: `rules.beliefs` fed from the histories of its negotiations.

A belief of the morning holds all earlier days; what a running negotiation has shown so far is added on demand.
The vector market does the same (`vector.beliefs`), so a learner meets in play what it has learnt with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from marlab.market.agent.threads import Thread
from marlab.market.logs.daystate import Array, DayState
from marlab.market.logs.worldlog import ACCEPT, END, REJECT
from marlab.market.rules import beliefs
from marlab.market.rules.bargain import LAST_ROUND
from marlab.market.rules.beliefs import Answers, Observer
from marlab.market.rules.l1 import Action

Row = tuple[float, ...]
"""An answer: round, my offer, its offer before, the operator, its offer; each offer is units, position and day."""
NO_OFFER = (0.0, 0.0, 0.0)


class BeliefBook:
    """Beliefs about all partners of one factory, by name."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer.like(np.zeros(1))
        self._known: dict[str, Array] = {}  # [Y] log-probabilities of the morning
        self._today: dict[str, Array] = {}  # [Y] what negotiations that have ended today have shown
        self._running: dict[str, tuple[int, Array]] = {}  # answers counted, and what they have shown

    def new_day(self) -> None:
        """What ended yesterday becomes part of what is known."""
        options = self.observer.options
        for partner in {*self._known, *self._today}:
            belief = beliefs.posterior(self._before(partner), self._today.get(partner, 0.0), options)
            self._known[partner] = beliefs.next_day(belief, options)
        self._today.clear()
        self._running.clear()

    def ended(self, thread: Thread, agreed: int, state: DayState) -> None:
        """A negotiation of today has ended; `agreed`: units, 0 without agreement. `thread` may have no history."""
        rows = answers_of(thread, state)
        last = last_answer(thread, agreed, state)
        rows = [row for row in [*rows, *last] if row[0] < LAST_ROUND or row[7] == ACCEPT]
        if rows:
            found = self._likelihoods(rows, [thread] * len(rows), state).sum(0)
            self._today[thread.partner] = self._today.get(thread.partner, 0.0) + found

    def of(self, threads: Sequence[Thread], state: DayState) -> Array:
        """[K, Y] log-probabilities now."""
        new: list[tuple[Thread, Row]] = []
        for thread in threads:
            count, _ = self._running.get(thread.partner, (0, None))
            rows = [row for row in answers_of(thread, state) if row[0] < LAST_ROUND]
            new += [(thread, row) for row in rows[count:]]
        if new:
            found = self._likelihoods([row for _, row in new], [thread for thread, _ in new], state)
            for (thread, _), each in zip(new, found):
                count, summed = self._running.get(thread.partner, (0, np.zeros(self.observer.size)))
                self._running[thread.partner] = count + 1, summed + each
        nothing = 0, np.zeros(self.observer.size)
        known = np.array([self._before(thread.partner) for thread in threads]).reshape(-1, self.observer.size)
        today = np.array([self._running.get(thread.partner, nothing)[1] for thread in threads]).reshape(known.shape)
        return beliefs.posterior(known, today, self.observer.options)

    def told(self, partner: str) -> dict[str, float]:
        """Probabilities of the morning by type, for the decision log."""
        shares = np.exp(self._before(partner))
        return {name: round(float(p), 3) for name, p in zip((*self.observer.types, beliefs.STRANGER), shares)}

    def _before(self, partner: str) -> Array:
        known = self._known.get(partner)
        return beliefs.prior((), self.observer, np.zeros(1)) if known is None else known

    def _likelihoods(self, rows: Sequence[Row], threads: Sequence[Thread], state: DayState) -> Array:
        """[M, Y] of answers in some threads."""
        return beliefs.log_likelihoods(self.observer, _answers(rows, threads, state))


def answers_of(thread: Thread, state: DayState) -> list[Row]:
    """The partner's offers so far and what came before each."""
    rows: list[Row] = []
    mine, before = NO_OFFER, NO_OFFER
    for quantity, price, ahead, own in thread.history:
        offer = (quantity, _position(price, thread.selling, state), ahead)
        if own:
            mine = offer
        else:
            rows.append((float(len(rows)), *mine, *before, float(REJECT), *offer))
            mine, before = NO_OFFER, offer
    return rows


def last_answer(thread: Thread, agreed: int, state: DayState) -> list[Row]:
    """How the partner ended a negotiation, if it did: by taking my offer, by leaving, or by never opening it."""
    rows = answers_of(thread, state)
    before = rows[-1][8:] if rows else NO_OFFER
    if thread.proposed is not None:
        quantity, when, price = thread.proposed
        mine = (float(quantity), _position(price, thread.selling, state), float(when - state.day))
        took = agreed > 0 and agreed == quantity
        if took or not agreed:
            return [(float(len(rows)), *mine, *before, float(ACCEPT if took else END), *NO_OFFER)]
    elif not agreed and not thread.history and partner_calls(thread.selling, state):
        return [(0.0, *NO_OFFER, *NO_OFFER, float(END), *NO_OFFER)]
    return []


def partner_calls(selling: bool, state: DayState) -> bool:
    """Whether the partners of one side speak first: the last level calls, then every second one upstream."""
    levels = int(state.n_products) - 1
    seller = int(state.input_product) - (0 if selling else 1)
    return ((levels - 2 - seller) % 2 == 0) == selling


def _position(price: float, selling: bool, state: DayState) -> float:
    low, high = (float(getattr(state, f"{'sell' if selling else 'buy'}_price_{end}")) for end in ("min", "max"))
    return (price - low) / max(1.0, high - low)


def _answers(rows: Sequence[Row], threads: Sequence[Thread], state: DayState) -> Answers:
    columns = np.array(rows, np.float64).T
    sells = np.array([thread.selling for thread in threads], bool)
    calls = np.array([partner_calls(thread.selling, state) for thread in threads], bool)
    at_the_end = {
        True: int(state.output_product) == int(state.n_products) - 2,  # my buyers are the last level
        False: int(state.input_product) == 1,  # my sellers are the first one
    }
    edge = np.array([at_the_end[thread.selling] for thread in threads], bool)
    like = np.zeros(len(rows))
    triples: list[Any] = [Action(*columns[begin : begin + 3]) for begin in (1, 4, 8)]
    return Answers(
        sells, calls, edge, like + float(state.day), like + float(state.n_steps), columns[0], triples[0], triples[1],
        columns[7].astype(np.int64), triples[2],
    )  # fmt: skip
