"""Rule W: a scripted executor that earns well in this simulator, and the floor that learning has to beat.

It rests on three facts. Stock is bought once, because it is never used up: buy the need of `economic.need` at once, at
any price. Sales are limited by demand: weigh every offer against what the partner may still bring, keep offering to
whoever stays, with lots that it has shown to take (`rule_sell`). And a day's sales beyond what can be made that day
only cost: every offer and acceptance of a round takes its room before the next one.

How partners bargain and what they take at which price comes from `partners.Record`, filled on earlier days.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from marlab.market.agent.decide import Wish, by_weight
from marlab.market.agent.rule_sell import Seat, day_for, sale, takes
from marlab.market.agent.settings import RuleOptions
from marlab.market.agent.threads import Offer, Situation
from marlab.market.logs.daystate import Array
from marlab.market.logs.worldlog import ACCEPT, END, REJECT
from marlab.market.rules import economic
from marlab.market.rules.l1 import Action, Caps

SPARE_NEED = 4
"""With a need of at least this, an offer of one unit too many is accepted."""
FILLING_DAYS = 2
"""A middle factory that fills its stock sells nothing for this many days."""


class RuleW:
    """The decider: accepts first, largest first, then offers in the order of L4's weights."""

    def __init__(self, options: RuleOptions | None = None) -> None:
        self._options = options or RuleOptions()

    def __call__(self, at: Situation, alpha: Array) -> _Wishes:
        """Look at a round once."""
        return _Wishes(at, alpha, self._options)


class _Wishes:
    def __init__(self, at: Situation, alpha: Array, options: RuleOptions) -> None:
        self._at, self._options = at, options
        self._seats: dict[int, Seat] = {}
        by_alpha = by_weight(at, alpha)
        self._reason: dict[int, str] = {}
        self._accepted = self._purchases() + self._sales()
        self.order = self._accepted + [i for i in by_alpha if i not in self._accepted]
        self._shares = self._split([i for i in self.order if not at.selling[i] and i not in self._accepted])

    # --- what to accept, before anything is offered -------------------------------------------------------------

    def _received(self, selling: bool) -> list[tuple[int, Offer]]:
        """Threads of a side with the partner's offer, largest first."""
        received = [(i, t.received) for i, t in enumerate(self._at.threads) if t.received and t.selling == selling]
        return sorted(received, key=lambda pair: (-pair[1][0], self._at.threads[pair[0]].partner))

    def _purchases(self) -> list[int]:
        """Offers for today that fit the need, at any price."""
        at, chosen = self._at, []
        self._need = float(economic.need(at.state))
        spare = 1 if self._need >= SPARE_NEED else 0
        room, budget = float(at.caps.buy[0]), float(at.caps.budget)
        for i, (quantity, when, price) in self._received(selling=False):
            fits = quantity <= min(self._need + spare, room) and quantity * price <= budget
            if when == at.state.day and self._need >= 1 and fits:
                chosen.append(i)
                self._reason[i] = "fits the need"
                self._need -= quantity
                room, budget = room - quantity, budget - quantity * price
        return chosen

    def _sales(self) -> list[int]:
        """Offers worth taking that fit the room of their day."""
        at, chosen, room = self._at, [], self._room(self._at.caps)
        for i, (quantity, when, price) in self._received(selling=True):
            slot = int(when - at.state.day)
            if 0 <= slot < len(room) and quantity <= room[slot] and takes(self._seat(i), quantity, price, slot):
                chosen.append(i)
                self._reason[i] = "good enough"
                room[slot] -= quantity
        return chosen

    def _room(self, left: Caps) -> Array:
        """[H+1] units that may be sold by day: what L1 leaves, less what a middle factory holds back to fill up."""
        state, room = self._at.state, left.sell.copy()
        filling = state.can_buy and state.inventory_input < state.n_lines
        if self._options.fill_first and filling and state.n_steps - state.day > economic.REFILL_DAYS:
            room[:FILLING_DAYS] = 0
        return room

    # --- what to offer ------------------------------------------------------------------------------------------

    def _split(self, others: list[int]) -> dict[int, float]:
        """The rest of the need over the other suppliers; a small one over up to twice as many as there are units."""
        need = int(max(0, self._need))
        if need >= len(others) > 0:
            return {i: need // len(others) + (place < need % len(others)) for place, i in enumerate(others)}
        return dict.fromkeys(others[: 2 * need], 1.0)

    def wish(self, i: int, left: Caps) -> Wish:
        """What to do in thread `i`."""
        op = ACCEPT if i in self._accepted else REJECT
        action = self._sell(i, left) if self._at.selling[i] else self._buy(i)
        return Wish(END if op == REJECT and action is None else op, action)

    def explain(self, i: int) -> dict[str, Any]:
        """Which part of the rule spoke."""
        return {"rule": self._reason.get(i, "nothing needed")}

    def _buy(self, i: int) -> Action | None:
        quantity = self._shares.get(i, 0.0)
        if quantity < 1:
            return None
        self._reason.setdefault(i, "share of the need")
        hurry = self._at.threads[i].round >= economic.RAISE_ROUND
        price = self._at.issue.price_max[i] if hurry else self._at.issue.price_min[i]
        return _action(quantity, float(price), 0)

    def _sell(self, i: int, left: Caps) -> Action | None:
        issue = self._at.issue
        room = np.floor(self._room(left))
        slots = np.arange(len(room))
        room = np.where((slots >= issue.first[i]) & (slots <= issue.last[i]), room, 0)
        if room.max() < 1:
            self._reason.setdefault(i, "no room")
            return None
        lot = sale(self._seat(i))
        self._reason.setdefault(i, lot.reason)
        return _action(lot.quantity, lot.price, day_for(lot, room))

    def _seat(self, i: int) -> Seat:
        if i not in self._seats:
            at, options = self._at, self._options
            thread, lowest, highest = at.threads[i], float(at.issue.price_min[i]), float(at.issue.price_max[i])
            self._seats[i] = Seat(
                thread.round, float(at.state.day) < options.opening_days, lowest, highest, at.record(i), options,
                cost=float(at.state.production_cost), offered=sum(mine for *_, mine in thread.history),
                heard=tuple(thread.heard_offers(lowest, highest)), room=self._room(at.caps),
            )  # fmt: skip
        return self._seats[i]


def _action(quantity: float, price: float, day: int) -> Action:
    return Action(np.asarray(float(quantity)), np.asarray(price), np.asarray(float(day)))
