"""What a playing agent knows at one joint decision: its negotiations of the day and everything computed from them.

Letters: K threads (running negotiations) of a round, in order of their partners' names, H + 1 days of a plan. The order
makes the round a function of the set of threads: whoever calls first, the same numbers come out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marlab.market.logs.daystate import Array, DayState
from marlab.market.rules import features
from marlab.market.rules.bargain import LAST_ROUND
from marlab.market.rules.features import FeatureOptions
from marlab.market.rules.l1 import Action, Caps, L1Options
from marlab.market.rules.offers import OfferBook, OfferSlots, offer_slots
from marlab.market.rules.partners import Heard, PartnerBook, Talk
from marlab.market.rules.plan import Threads
from marlab.market.rules.records import PARTNER_SIZE
from marlab.market.rules.round_state import RoundState

Offer = tuple[int, int, int]
"""An outcome of the simulator: quantity, absolute delivery day, unit price."""


@dataclass
class Thread:
    """One negotiation of the day."""

    partner: str
    selling: bool
    history: list[tuple[float, float, float, bool]] = field(default_factory=list)  # quantity, price, delta, mine
    received: Offer | None = None  # the partner's offer on the table
    round: int = 0
    relative_time: float = features.FIRST_RELATIVE_TIME
    heard: int = -1  # the round of the last offer of the partner that was noted
    proposed: Offer | None = None  # my offer that the partner has not answered yet

    def heard_offers(self, lowest: float, highest: float) -> list[Heard]:
        """The partner's offers so far, prices as positions between the bounds of the issue."""
        span = max(1.0, highest - lowest)
        return [Heard(q, (price - lowest) / span, delta) for q, price, delta, mine in self.history if not mine]

    def talk(self, agreed: int, lowest: float, highest: float) -> Talk:
        """The negotiation after its end; `agreed`: units, 0 without agreement."""
        mine = [row for row in self.history if row[3]]
        # without a proposal of mine on the table it was the partner's offer that was taken
        taken = agreed if self.proposed is not None and self.proposed[0] == agreed else 0
        left = not agreed and self.proposed is not None and self.round < LAST_ROUND
        return Talk(self.partner, self.selling, self.heard_offers(lowest, highest), len(mine), taken, left)

    @property
    def moment(self) -> tuple[str, int, Offer | None]:
        """What distinguishes this decision from others of the day."""
        return self.partner, self.round, self.received


@dataclass(frozen=True)
class Morning:
    """What a day's plans start from."""

    state: DayState  # without the deals signed during the day
    goal: Array  # [16]
    x_static: Array  # [12]
    game: int = 0  # tells this game's draws from those of others


class Situation(RoundState):
    """One joint decision of a playing agent, which has one factory."""

    def __init__(
        self, morning: Morning, state: DayState, caps: Caps, threads: Iterable[Thread], offers: OfferBook,
        book: PartnerBook, l1_options: L1Options, feature_options: FeatureOptions,
    ) -> None:  # fmt: skip
        """`state` is the morning with the deals signed since, `caps` are L1's for it."""
        self.morning, self.state, self.caps = morning, state, caps
        self.goal, self.x_static = morning.goal, morning.x_static
        self.threads: Sequence[Thread] = sorted(threads, key=lambda thread: thread.partner)
        self.book, self._offers = book, offers
        self.l1_options, self.feature_options = l1_options, feature_options
        day = float(state.day)
        self.there = np.ones(len(self.threads), bool)
        self.selling = np.array([t.selling for t in self.threads], bool)
        self.rounds = np.array([t.round for t in self.threads], np.float64)
        self.relative_time = np.array([t.relative_time for t in self.threads], np.float64)
        self.length = np.array([len(t.history) for t in self.threads], np.float64)
        self.latest = _columns(t.history[-1][:3] if t.history else None for t in self.threads)
        self.table = _columns(_relative(t.received, day) for t in self.threads)
        self.batch = DayState(*(field[None] for field in state))
        self.batch_caps = Caps(*(field[None] for field in caps))

    @cached_property
    def slots(self) -> OfferSlots:  # type: ignore[override]
        """[2, H+1] with the offers known so far."""
        known = offer_slots(self.batch, self._offers.known(float(self.state.day)))
        return OfferSlots(*(part[0] for part in known))

    @cached_property
    def signed(self) -> Array:  # type: ignore[override]
        """[K, H+1] since the morning."""
        before = self.morning.state
        return np.where(self.selling[:, None], self.state.q_out - before.q_out, self.state.q_in - before.q_in)

    @cached_property
    def sides(self) -> dict[bool, Threads]:  # type: ignore[override]
        """By whether the factory sells: the threads [1, K] as rules and plans take them."""
        return {selling: self._side(selling) for selling in (False, True) if len(self.of_side(selling))}

    def part(self, values: Any, selling: bool) -> Any:
        """Of values [K, ...], those of one side as a batch of one."""
        if isinstance(values, tuple):
            return type(values)(*(self.part(column, selling) for column in values))
        return np.asarray(values)[None, self.of_side(selling)]

    def partners(self) -> Array:
        """[K, 10] statistics of the partners."""
        found = np.zeros((len(self.threads), PARTNER_SIZE))
        for selling in (False, True):
            here = self.of_side(selling)
            found[here] = self.book.features([self.threads[i].partner for i in here], selling)
        return found

    def of_side(self, selling: bool) -> NDArray[np.intp]:
        """Places of the threads of one side."""
        return np.flatnonzero(self.selling == selling)

    def _side(self, selling: bool) -> Threads:
        here = [self.threads[i] for i in self.of_side(selling)]
        day = float(self.state.day)
        heard = [[row[:3] for row in t.history if not row[3]] for t in here]
        table = np.full((3, 1, len(here), max(map(len, heard), default=0)), np.nan)
        for k, rows in enumerate(heard):
            if rows:
                table[:, 0, k, : len(rows)] = np.array(rows, np.float64).T
        return Threads(
            there=np.ones((1, len(here)), bool),
            round=np.array([[t.round for t in here]], np.float64),
            received=self.part(self.table, selling),
            proposed=Action(*(c[None] for c in _columns(_relative(t.proposed, day) for t in here))),
            heard=Action(*table),
            offered=np.array([[len(t.history) - len(rows) for t, rows in zip(here, heard)]], np.float64),
            records=self.book.records([t.partner for t in here], selling).take(None),
        )


def _relative(offer: Offer | None, day: float) -> tuple[float, float, float] | None:
    """Quantity, price and days from today."""
    return None if offer is None else (offer[0], offer[2], offer[1] - day)


def _columns(rows: Iterable[Sequence[float] | None]) -> Action:
    """Quantity, price and day, each [K], nan where a row is missing."""
    table = [(np.nan,) * 3 if row is None else tuple(row) for row in rows]
    return Action(*np.array(table, np.float64).reshape(-1, 3).T)
