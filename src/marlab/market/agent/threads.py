"""What a playing agent knows at one joint decision: its negotiations of the day and everything computed from them.

Letters: K threads (running negotiations) of a round, in order of their partners' names, H + 1 days of a plan. The order
makes the round a function of the set of threads: whoever calls first, the same numbers come out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from marlab.market.logs.daystate import Array, DayState
from marlab.market.rules import features, l1
from marlab.market.rules.bargain import LAST_ROUND
from marlab.market.rules.executor import rule_accepts
from marlab.market.rules.features import FeatureOptions
from marlab.market.rules.l1 import Action, Bools, Caps, Issue, L1Options
from marlab.market.rules.offers import OfferBook, OfferSlots, offer_slots
from marlab.market.rules.partners import Heard, PartnerBook, Talk
from marlab.market.rules.plan import Threads
from marlab.market.rules.records import PARTNER_SIZE

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


class Situation:
    """One joint decision. Costly features are computed when they are first asked for."""

    def __init__(
        self, morning: Morning, state: DayState, caps: Caps, threads: Iterable[Thread], offers: OfferBook,
        book: PartnerBook, l1_options: L1Options, feature_options: FeatureOptions,
    ) -> None:  # fmt: skip
        """`state` is the morning with the deals signed since, `caps` are L1's for it."""
        self.morning, self.state, self.caps, self.goal = morning, state, caps, morning.goal
        self.threads: Sequence[Thread] = sorted(threads, key=lambda thread: thread.partner)
        self.book, self.l1_options = book, l1_options
        self._offers, self._features = offers, feature_options
        self._sides: dict[bool, tuple[Threads, Issue]] = {}
        day = float(state.day)
        self.selling: Bools = np.array([t.selling for t in self.threads], bool)
        self.rounds = np.array([t.round for t in self.threads], np.float64)
        self.relative_time = np.array([t.relative_time for t in self.threads], np.float64)
        self.length = np.array([len(t.history) for t in self.threads], np.float64)
        self.latest = _columns(t.history[-1][:3] if t.history else None for t in self.threads)
        self.table = _columns(_relative(t.received, day) for t in self.threads)  # the partner's offer, nan without one
        self.issue: Issue = l1.issue_of(state, self.selling)
        self.cap = caps.of(self.selling)  # [K, H+1]
        self.mask = l1.time_mask(self.cap, self.issue)  # [K, H+1]
        self.base: Action = l1.baseline(state, caps, self.selling, l1_options, self.rounds)
        self.accepts: Bools = rule_accepts(self.table, self.goal, self.cap, caps.budget, self.selling, self.issue)

    @cached_property
    def days(self) -> Array:
        """delta* [K]."""
        return features.latest_day(self.latest.day, self.base.day, self.state.horizon)

    @cached_property
    def batch(self) -> DayState:
        """The state as a batch of one."""
        return DayState(*(field[None] for field in self.state))

    @cached_property
    def batch_caps(self) -> Caps:
        """L1's caps as a batch of one."""
        return Caps(*(field[None] for field in self.caps))

    @cached_property
    def _slots(self) -> OfferSlots:
        """[1, 2, H+1] with the offers known so far."""
        return offer_slots(self.batch, self._offers.known(float(self.state.day)))

    @cached_property
    def x_temporal(self) -> Array:
        """[H+1, channels]"""
        return features.temporal_features(self.batch, self._slots, self._features)[0]

    @cached_property
    def _negotiations(self) -> features.Negotiations:
        return features.Negotiations(
            self.selling, self.base, self.cap, self.mask, self.latest, self.length, self.relative_time
        )

    @cached_property
    def thread_features(self) -> Array:
        """[K, 24]"""
        return features.thread_features(self.state, self.x_temporal, self.goal, self._negotiations)

    @cached_property
    def priorities(self) -> Array:
        """[K] the first of the features, alone."""
        slots = OfferSlots(*(part[0] for part in self._slots))
        return features.priorities(self.state, slots, self._features, self.goal, self._negotiations)

    @cached_property
    def aux(self) -> Array:
        """[K, 7]"""
        before = self.morning.state
        signed = np.where(self.selling[:, None], self.state.q_out - before.q_out, self.state.q_in - before.q_in)
        return features.micro_aux(
            self.state, self.caps.budget, self.selling, self.issue, self.relative_time, self.table.day, self.base.day,
            self.goal, signed,
        )  # fmt: skip

    @cached_property
    def context(self) -> Array:
        """global_feat [30]"""
        return features.global_features(
            self.goal, self.morning.x_static, (~self.selling).sum(), np.asarray(self.selling.sum())
        )

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

    def side(self, selling: bool) -> tuple[Threads, Issue]:
        """The threads of one side [1, K] and the bounds of their issue [1], as rules and plans take them."""
        if selling not in self._sides:
            self._sides[selling] = self._side(selling), l1.issue_of(self.batch, selling)
        return self._sides[selling]

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
            received=_columns((_relative(t.received, day) for t in here), 1),
            proposed=_columns((_relative(t.proposed, day) for t in here), 1),
            heard=Action(*table),
            offered=np.array([[len(t.history) - len(rows) for t, rows in zip(here, heard)]], np.float64),
            records=self.book.records([t.partner for t in here], selling).take(None),
        )


def _relative(offer: Offer | None, day: float) -> tuple[float, float, float] | None:
    """Quantity, price and days from today."""
    return None if offer is None else (offer[0], offer[2], offer[1] - day)


def _columns(rows: Iterable[Sequence[float] | None], batch: int | None = None) -> Action:
    """Quantity, price and day, each [K] or [batch, K], nan where a row is missing."""
    table = [(np.nan,) * 3 if row is None else tuple(row) for row in rows]
    columns = np.array(table, np.float64).reshape(-1, 3).T
    return Action(*(columns if batch is None else columns.reshape(3, batch, -1)))
