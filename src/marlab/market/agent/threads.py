"""What a playing agent knows at one joint decision: its negotiations of the day and everything computed from them.

Letters: K threads (running negotiations) of a round, in order of their partners' names, H + 1 days of a plan. The order
makes the round a function of the set of threads: whoever calls first, the same numbers come out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from marlab.market.logs.daystate import Array, DayState, stack
from marlab.market.rules import features, l1
from marlab.market.rules.executor import rule_accepts
from marlab.market.rules.features import FeatureOptions
from marlab.market.rules.l1 import Action, Bools, Caps, Issue, L1Options
from marlab.market.rules.offers import ROUNDS, OfferBook, offer_slots
from marlab.market.rules.partners import Heard, PartnerBook, Record

LAST_ROUND = ROUNDS - 1
"""After an answer in this round a negotiation is over."""
Offer = tuple[int, int, int]
"""An outcome of the simulator: quantity, absolute delivery day, unit price."""


@dataclass(frozen=True)
class Talk:
    """What is remembered of how a negotiation went."""

    partner: str
    selling: bool
    heard: list[Heard]
    offers: int  # mine
    taken: int  # units of mine that were taken
    left: bool  # the partner ended it instead of answering


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


class Situation:
    """One joint decision. Costly features are computed when they are first asked for."""

    def __init__(
        self, morning: Morning, state: DayState, caps: Caps, threads: Iterable[Thread], offers: OfferBook,
        book: PartnerBook, l1_options: L1Options, feature_options: FeatureOptions,
    ) -> None:  # fmt: skip
        """`state` is the morning with the deals signed since, `caps` are L1's for it."""
        self.morning, self.state, self.caps, self.goal = morning, state, caps, morning.goal
        self.threads: Sequence[Thread] = sorted(threads, key=lambda thread: thread.partner)
        self.book = book
        self._offers, self._features = offers, feature_options
        day = float(state.day)
        self.selling: Bools = np.array([t.selling for t in self.threads], bool)
        self.rounds = np.array([t.round for t in self.threads], np.float64)
        self.relative_time = np.array([t.relative_time for t in self.threads], np.float64)
        self.length = np.array([len(t.history) for t in self.threads], np.float64)
        self.latest = _columns(t.history[-1][:3] if t.history else None for t in self.threads)
        on_table = ((t.received[0], t.received[2], t.received[1] - day) if t.received else None for t in self.threads)
        self.table = _columns(on_table)  # the partner's offer, nan without one
        self.issue: Issue = l1.issue_of(state, self.selling)
        self.cap = caps.of(self.selling)  # [K, H+1]
        self.mask = l1.time_mask(self.cap, self.issue)  # [K, H+1]
        self.base: Action = l1.baseline(state, caps, self.selling, l1_options, self.rounds)
        self.accepts: Bools = rule_accepts(self.table, self.goal, self.cap, caps.budget, self.selling, self.issue)

    @cached_property
    def base_day(self) -> Array:
        """[K] the baseline's day, or the first open one where that is closed; meaningless where all are closed."""
        is_open = self.mask == 0
        return np.where(l1.at(self.mask, self.base.day) == 0, self.base.day, is_open.argmax(-1)).astype(np.float64)

    @cached_property
    def days(self) -> Array:
        """delta* [K]."""
        return features.latest_day(self.latest.day, self.base.day, self.state.horizon)

    @cached_property
    def x_temporal(self) -> Array:
        """[H+1, channels] with the offers known so far."""
        batch = stack([self.state])
        slots = offer_slots(batch, self._offers.known(float(self.state.day)))
        return features.temporal_features(batch, slots, self._features)[0]

    @cached_property
    def thread_features(self) -> Array:
        """[K, 24]"""
        negotiations = features.Negotiations(
            self.selling, self.base, self.cap, self.mask, self.latest, self.length, self.relative_time
        )
        return features.thread_features(self.state, self.x_temporal, self.goal, negotiations)

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

    def record(self, i: int) -> Record:
        """What earlier days told about a thread's partner."""
        return self.book.record(self.threads[i].partner, self.threads[i].selling)

    def partners(self) -> Array:
        """[K, 10] statistics of the partners."""
        return np.stack([self.book.features(t.partner, t.selling) for t in self.threads])


def _columns(rows: Iterable[Sequence[float] | None]) -> Action:
    """Quantity, price and day, each [K], nan where a row is missing."""
    table = [(np.nan,) * 3 if row is None else tuple(row) for row in rows]
    return Action(*np.array(table, np.float64).reshape(-1, 3).T)
