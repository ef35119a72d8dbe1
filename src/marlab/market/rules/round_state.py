"""One joint decision: everything that rules and networks see of a round, for play and for the vector market alike.

Letters: K threads (running negotiations) of a factory, S = H + 1 days of a plan; `...` is nothing for one factory in
play, and N for factories of the vector market. Costly features are computed when they are first asked for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from marlab.market.logs.daystate import Array, DayState
from marlab.market.logs.worldlog import ACCEPT, REJECT
from marlab.market.rules import executor, features, l1, rule_w
from marlab.market.rules.arrays import namespace
from marlab.market.rules.bargain import ManyOptions, RuleOptions
from marlab.market.rules.executor import Decision, HeuristicL3Executor, HeuristicL4Coordinator
from marlab.market.rules.features import FeatureOptions
from marlab.market.rules.l1 import Action, Bools, Caps, Issue, L1Options
from marlab.market.rules.offers import OfferSlots
from marlab.market.rules.plan import Threads, Wishes


class RoundState(ABC):
    """What is known at one joint decision. Threads of both sides stand side by side; `part` takes those of one."""

    state: DayState  # [...], the morning with the deals signed since
    caps: Caps  # L1's for it
    l1_options: L1Options
    feature_options: FeatureOptions
    goal: Array  # [..., 16] of the day
    x_static: Array  # [..., 12]
    there: Bools  # [..., K]
    selling: Bools  # [..., K]
    rounds: Array  # [..., K]
    relative_time: Array  # [..., K]
    length: Array  # [..., K] offers of both parties so far
    table: Action  # each [..., K]: the partner's offer, nan without one
    latest: Action  # each [..., K]: the latest offer of both parties
    slots: OfferSlots  # [..., 2, S] offers known so far
    signed: Array  # [..., K, S] units signed today on the thread's side
    batch: DayState  # [N]: the state; one factory is a batch of one
    batch_caps: Caps
    sides: Mapping[bool, Threads]  # by whether the factory sells, [N, K of the side]; one without threads is missing

    @abstractmethod
    def part(self, values: Any, selling: bool) -> Any:
        """Of values [..., K, ...], or of each of a tuple, those of one side: [N, K of the side, ...]."""

    @cached_property
    def _state(self) -> DayState:
        """The state with an axis for threads."""
        return self.state.per_thread()

    @cached_property
    def issue(self) -> Issue:
        """[..., K] each"""
        return l1.issue_of(self._state, self.selling)

    @cached_property
    def cap(self) -> Array:
        """[..., K, S]"""
        return self.caps.per_thread().of(self.selling)

    @cached_property
    def mask(self) -> Array:
        """[..., K, S]: 0 on days that L1 allows, else -inf."""
        return l1.time_mask(self.cap, self.issue)

    @cached_property
    def base(self) -> Action:
        """L1's baseline, each [..., K]."""
        return l1.baseline(self._state, self.caps.per_thread(), self.selling, self.l1_options, self.rounds)

    @cached_property
    def accepts(self) -> Bools:
        """[..., K] whether L1's rule takes the offer on the table."""
        goal, budget = self.goal[..., None, :], self.caps.budget[..., None]
        return executor.rule_accepts(self.table, goal, self.cap, budget, self.selling, self.issue)

    @cached_property
    def days(self) -> Array:
        """delta* [..., K]."""
        return features.latest_day(self.latest.day, self.base.day, self.state.horizon)

    @cached_property
    def _negotiations(self) -> features.Negotiations:
        return features.Negotiations(
            self.selling, self.base, self.cap, self.mask, self.latest, self.length, self.relative_time
        )

    @cached_property
    def priorities(self) -> Array:
        """[..., K] the first of the features, alone."""
        return features.priorities(self.state, self.slots, self.feature_options, self.goal, self._negotiations)

    @cached_property
    def thread_features(self) -> Array:
        """[..., K, 24]"""
        temporal = features.temporal_features(self.state, self.slots, self.feature_options)
        return features.thread_features(
            self._state, temporal[..., None, :, :], self.goal[..., None, :], self._negotiations
        )

    @cached_property
    def context(self) -> Array:
        """global_feat [..., 30]"""
        buying, selling = ((self.there & side).sum(-1) for side in (~self.selling, self.selling))
        return features.global_features(self.goal, self.x_static, buying, selling)

    @cached_property
    def aux(self) -> Array:
        """[..., K, 7]"""
        return features.micro_aux(
            self._state, self.caps.budget[..., None], self.selling, self.issue, self.relative_time, self.table.day,
            self.base.day, self.goal[..., None, :], self.signed,
        )  # fmt: skip

    def l3_inputs(self, history: Array, present: Bools, partners: Array) -> tuple[Any, ...]:
        """What L3's network takes, each [..., K, ...]; the history and what is known of partners are given."""
        xp = namespace(self.goal)
        goal = xp.expand(self.goal[..., None, :], (*self.selling.shape, self.goal.shape[-1]))
        is_open = l1.open_mask(self.mask, self.base.day) == 0
        rule_op = xp.where(self.accepts, ACCEPT, REJECT)
        role = xp.ints(1.0 * self.selling)
        return history, present, goal, role, xp.stack(list(self.base)), self.aux, is_open, rule_op, partners


def wishes_of(
    at: RoundState, alpha: Array, decision: Decision, strength: Array | float = 0.0, days: Array | None = None
) -> dict[bool, Wishes]:
    """Wishes by side of threads that were decided all at once, by `executor.wishes_of`: arguments are [..., K]."""
    slots = at.state.horizon + 1
    return {
        selling: executor.wishes_of(
            at.part(at.base, selling),
            at.part(decision, selling),
            at.part(alpha, selling),
            slots,
            strength if isinstance(strength, float) else at.part(strength, selling),
            None if days is None else at.part(days, selling),
        )
        for selling in at.sides
    }


def plain_decision(at: RoundState) -> Decision:
    """L1's baseline and its acceptance rule, nothing else."""
    return executor.plain_decision(at.base, at.mask, at.accepts)


def thumb_decision(at: RoundState) -> Decision:
    """The rule of thumb of the guide, which concedes in price with every offer."""
    return HeuristicL3Executor().decide(at.base, at.mask, at.selling, at.length, at.accepts)


def rule_wishes(
    at: RoundState, alpha: Array, options: RuleOptions | ManyOptions
) -> tuple[dict[bool, Wishes], Array | None]:
    """What rule W wishes on each side; and, of sales, what waiting is worth in each thread [N, K of the side]."""
    found: dict[bool, Wishes] = {}
    worth = None
    for selling, threads in at.sides.items():
        shared = (at.batch, at.batch_caps, threads, l1.issue_of(at.batch, selling), at.part(alpha, selling))
        if selling:
            found[selling], worth = rule_w.sell(*shared, options)
        else:
            found[selling] = rule_w.buy(*shared)
    return found, worth


def heuristic_weights(at: RoundState) -> Array:
    """L4's weights [..., K] by the teacher's rule."""
    return HeuristicL4Coordinator().weights(at.days, at.priorities, at.there)


def uniform_weights(at: RoundState) -> Array:
    """Equal weights [..., K]."""
    xp = namespace(at.goal)
    count = xp.maximum(1, xp.floats(at.there.sum(-1), at.goal))
    return 1.0 * at.there / count[..., None]
