"""LitaAgentHRL in the vector market: all its factories at once, by the same rules and networks.

`Batched` plays what `LitaAgentHRL(**settings)` plays, decision for decision: pure L1, the rules, and networks that were
trained (frozen checkpoints as opponents and as sellers). Only `decode="sample"` draws other numbers.

Letters: N factories that decide, K = 2 A threads of each (suppliers, then consumers), S = H + 1 days of a plan.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import nn

from marlab.lab.errors import UserError
from marlab.market.agent.layers import load_parts
from marlab.market.agent.neural import rounded_weights
from marlab.market.agent.settings import AgentSettings
from marlab.market.logs.daystate import SCHEDULES, DayState
from marlab.market.networks.coordinator import GlobalCoordinator
from marlab.market.networks.executor import L3Inputs, TemporalDecisionTransformer
from marlab.market.networks.manager import HorizonManagerPPO
from marlab.market.networks.weights import from_plain
from marlab.market.rules import executor, features, goals, l1, plan, records
from marlab.market.rules.executor import Decision
from marlab.market.rules.features import FeatureOptions
from marlab.market.rules.l1 import Action, Caps, L1Options
from marlab.market.rules.offers import OfferSlots
from marlab.market.rules.partners import POOL_SIZE, extra_features
from marlab.market.rules.plan import Wishes
from marlab.market.rules.round_state import (
    RoundState,
    heuristic_weights,
    plain_decision,
    rule_wishes,
    thumb_decision,
    uniform_weights,
    wishes_of,
)
from marlab.market.vector.market import Market
from marlab.market.vector.memory import Memory
from marlab.market.vector.rounds import ROUNDS, Moves
from marlab.market.vector.rule_w import Outlooks, RuleW
from marlab.market.vector.seats import CONSUMERS, SUPPLIERS, Rows

Tensor = Any
"""A torch.Tensor. The rules work on numpy arrays and tensors alike; their types name the former."""


@dataclass(frozen=True)
class Today:
    """What the day's plans start from, for all factories [B, L, A]."""

    goal: Tensor  # [..., 16]
    x_static: Tensor  # [..., 12]
    bought: Tensor  # [..., S] units that were signed before the morning, by delivery
    sold: Tensor  # [..., S]


@dataclass
class Round(RoundState):
    """One joint decision of N factories."""

    state: DayState
    caps: Caps
    l1_options: L1Options
    feature_options: FeatureOptions
    goal: Tensor
    x_static: Tensor
    signed: Tensor
    slots: OfferSlots
    there: Tensor
    selling: Tensor
    half: int
    latest: Action  # the partner's offer is the latest of both
    sides: dict[bool, plan.Threads]
    history: Tensor  # [N, K, T, 4] the latest offers, at least one row
    partners: Tensor  # [N, K, 10] statistics of the partners; [N, K, 0] where no network asks for them

    def __post_init__(self) -> None:
        self.batch, self.batch_caps, self.table = self.state, self.caps, self.latest
        nothing: Tensor = torch.zeros(self.there.shape, dtype=self.goal.dtype, device=self.goal.device)
        self.rounds = nothing + self.half // 2
        self.length = nothing + self.half  # both have made an offer in every round
        self.relative_time = (self.rounds + 1) / (ROUNDS + 1)

    def network_inputs(self) -> L3Inputs:
        """The threads [N K] as L3's network takes them."""
        present = torch.full(self.history.shape[:3], self.half > 0, device=self.goal.device)
        arrays: Any = self.l3_inputs(self.history, cast(Any, present), self.partners)
        found = [part.flatten(0, 1) for part in arrays]
        return L3Inputs(*(part.float() if part.is_floating_point() else part for part in found))

    def part(self, values: Any, selling: bool) -> Any:
        """Half of values [N, K, ...]: suppliers stand before consumers."""
        if isinstance(values, tuple):
            return type(values)(*(self.part(column, selling) for column in values))
        half = values.shape[1] // 2
        return values[:, half:] if selling else values[:, :half]


class Batched(RuleW):
    """LitaAgentHRL with some settings as a policy; `dtype`: of everything but the networks, which have float32."""

    def __init__(
        self,
        market: Market,
        settings: AgentSettings,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float64,
        chosen: Tensor | None = None,
    ) -> None:
        """`chosen` [B, L, A]: the seats that it will be asked for, by default any."""
        if settings.plays == "learned":
            raise UserError("A network around the rule is no layer of this policy: it has a policy of its own.")
        super().__init__(market, settings.rule_options(), dtype, chosen)
        self.memory = Memory(market, dtype, chosen, (SUPPLIERS, CONSUMERS))
        self._outlooks = Outlooks(self.memory), Outlooks(self.memory)
        self.settings, self.parts, self.generator = settings, load_parts(settings), generator
        device = market.device

        def module(network: Any) -> nn.Module | None:
            return None if network is None else from_plain(network).to(device)

        self._manager = cast("HorizonManagerPPO | None", module(self.parts.l2.network))
        self._executor = cast("TemporalDecisionTransformer | None", module(self.parts.executor))
        self._coordinator = cast("GlobalCoordinator | None", module(self.parts.coordinator))
        self._today: Today | None = None

    @torch.no_grad()
    def open(self, market: Market) -> None:
        """Every morning: L2's goal."""
        self.memory.open(market)
        self.mornings.open(market)
        rows = self.memory.seats.rows(market.setup.exists & self.memory.chosen)
        # networks learnt from mornings as they are told
        state = self._wide(self.mornings.at(market, rows, alive=not self.settings.is_neural))
        static: Tensor = features.static_features(state, self.parts.features)
        values = (self._goals(market, rows, state), static, state.q_in, state.q_out)
        self._today = Today(*(_everywhere(market, rows, value) for value in values))

    @torch.no_grad()
    def answer(self, market: Market, rows: Rows) -> tuple[Moves, Tensor]:
        """The moves of these rows."""
        at = self._round(market, rows)
        alpha = self._alpha(at)
        wished = self._wishes(at, alpha)
        moves, places = [], []
        for selling, threads in at.sides.items():
            issue = l1.issue_of(at.state, selling)
            answers: Any = plan.plan(at.state, self.parts.l1, selling, threads, issue, wished[selling], explain=False)
            moves.append([values[threads.there].to(torch.int32) for values in answers[:4]])
            places.append(rows.threads[:, int(selling)][threads.there])
        return Moves(*(torch.cat(parts) for parts in zip(*moves))), torch.cat(places)

    # --- what is known --------------------------------------------------------------------------------------------

    def _wide(self, state: DayState) -> DayState:
        """The state with as many days as the plans look ahead."""
        return state.replace(**{name: self._padded(getattr(state, name)) for name in SCHEDULES})

    def _padded(self, schedule: Tensor) -> Tensor:
        missing = self.settings.horizon + 1 - schedule.shape[-1]
        return torch.nn.functional.pad(schedule, (0, missing))

    def _slots(self, rows: Rows) -> OfferSlots:
        return OfferSlots(*(self._padded(part) for part in self.memory.slots(rows)))

    def _round(self, market: Market, rows: Rows) -> Round:
        assert self._today is not None
        state = self._wide(self.mornings.at(market, rows, alive=True))
        running = rows.gather(market.threads.running) & rows.sides[:, :, None]  # [N, 2, A]
        there = running.flatten(1)
        selling = torch.arange(2, device=there.device).repeat_interleave(market.wide) == CONSUMERS
        selling = selling.expand(there.shape)
        sides = {
            bool(side): self._threads(market, rows, side, running[:, side])
            for side in (SUPPLIERS, CONSUMERS)
            if bool(running[:, side].any())
        }
        offers = (market.threads.units, market.threads.price, market.threads.ahead)
        table: list[Tensor] = [rows.gather(values).flatten(1).to(self.mornings.dtype) for values in offers]
        missing = ~there | (table[0] == 0)
        latest = Action(*(values.masked_fill(missing, math.nan) for values in table))
        bought, sold = (
            now - before[rows.seat]
            for now, before in zip((state.q_in, state.q_out), (self._today.bought, self._today.sold))
        )
        signed = torch.where(selling[..., None], sold[:, None], bought[:, None])
        return Round(
            state, l1.caps(state, self.parts.l1), self.parts.l1, self.parts.features, self._today.goal[rows.seat],
            self._today.x_static[rows.seat], signed, self._slots(rows), there, selling, market.half, latest, sides,
            self._history(market, rows), self._statistics(market, rows),
        )  # fmt: skip

    def _statistics(self, market: Market, rows: Rows) -> Tensor:
        """[N, K, 10] what is known about the partners."""
        if self._executor is None or not self._executor.options["d_partner"]:
            return torch.zeros((len(rows), 2 * market.wide, 0), dtype=self.mornings.dtype, device=market.device)
        found: list[Tensor] = []
        for side in (SUPPLIERS, CONSUMERS):
            if len(self.memory.partners[side].rows):
                found.append(records.features(self.memory.known(rows, side)))
            else:
                shape = (len(rows), market.wide, records.PARTNER_SIZE)
                found.append(torch.zeros(shape, dtype=self.mornings.dtype, device=market.device))
        return torch.cat(found, 1)

    def _pooled(self, market: Market, rows: Rows, side: int, day: Tensor) -> Tensor:
        """[N, 11] what is known about all partners of a side together; zeros where there are none."""
        if not len(self.memory.partners[side].rows):
            return torch.zeros((len(rows), POOL_SIZE), dtype=self.mornings.dtype, device=market.device)
        known: Tensor = records.pooled(self.memory.known(rows, side), day)
        return known * rows.sides[:, side, None]

    def _history(self, market: Market, rows: Rows) -> Tensor:
        """[N, K, T, 4] the latest offers of both parties."""
        half = market.half
        longest = max(1, min(features.MAX_HISTORY, half))
        cut = slice(half - longest, half) if half else slice(0, 1)
        columns: list[Tensor] = [
            values[cut].flatten(1)[:, rows.threads].permute(1, 2, 3, 0).flatten(1, 2).to(self.mornings.dtype)
            for values in (self.memory.units, self.memory.price, self.memory.ahead)
        ]
        mine: Tensor = torch.arange(half - longest, half, device=market.device) % 2 == half % 2
        units, price, ahead = columns
        rows_of: Tensor = features.history_rows(units, price, ahead, mine.expand(units.shape), self.settings.horizon)
        return rows_of * float(half > 0)

    # --- what is decided ------------------------------------------------------------------------------------------

    def _goals(self, market: Market, rows: Rows, state: DayState) -> Tensor:
        """L2's goals [N, 16]."""
        if self.settings.goal_zero:
            return torch.zeros((len(rows), goals.GOAL_SIZE), dtype=self.mornings.dtype, device=market.device)
        if self._manager is None:
            if self.parts.is_rule_w:
                return goals.economic_goal(state, l1.caps(state, self.parts.l1))
            return goals.heuristic_goal(state)
        options = self.parts.l2.features
        static: Tensor = features.static_features(state, options)
        if options.extra:
            more: Tensor = torch.cat(
                [self._pooled(market, rows, side, state.day) for side in (CONSUMERS, SUPPLIERS)], -1
            )
            static = torch.cat([static, cast(Tensor, extra_features(state, more))], -1)
        temporal: Tensor = features.temporal_features(state, self._slots(rows), options)
        inputs: tuple[Tensor, ...] = (static, temporal, goals.roles(state))
        mean, _, _ = self._manager(*(values.float() for values in inputs))
        return goals.mask_goal(mean.to(self.mornings.dtype), goals.roles(state))

    def _alpha(self, at: Round) -> Tensor:
        """L4's weights [N, K]."""
        if self._coordinator is not None:
            threads: Tensor = at.thread_features
            days: Tensor = at.days
            context: Tensor = at.context
            alpha, _ = self._coordinator(threads.float(), days.long(), at.selling.long(), context.float(), at.there)
            return rounded_weights(alpha.to(self.mornings.dtype))
        return uniform_weights(at) if self.parts.l4 == "uniform" else heuristic_weights(at)

    def _wishes(self, at: Round, alpha: Tensor) -> dict[bool, Wishes]:
        """L3's wishes for suppliers and for consumers."""
        if self.settings.is_pure_l1:
            return wishes_of(at, alpha, plain_decision(at))
        if self._executor is None:
            own = self._rule(at, alpha)
        else:
            own, chances = self._network(at, alpha)
            least, only_sales = self.settings.min_confidence, self.parts.learns_sales_only(self.settings)
            if only_sales or least > 0:
                may = (chances >= least) & (at.selling | (not only_sales))
                rule = self._rule(at, alpha)
                own = {side: executor.divided(own[side], rule[side], at.part(may, side)) for side in own}
        if self.settings.residual_off or self.settings.op_head_off:
            plain = wishes_of(at, alpha, plain_decision(at))
            switches = self.settings.residual_off, self.settings.op_head_off
            own = {side: executor.ablated(mine, plain[side], *switches) for side, mine in own.items()}
        return own

    def _rule(self, at: Round, alpha: Tensor) -> dict[bool, Wishes]:
        """Rule W, or the rule of thumb of the guide."""
        if self.parts.is_rule_w:
            return rule_wishes(at, alpha, self.options)[0]
        return wishes_of(at, alpha, thumb_decision(at), strength=alpha)

    def _network(self, at: Round, alpha: Tensor) -> tuple[dict[bool, Wishes], Tensor]:
        """L3's network: its wishes, and how probable its operators are [N, K]."""
        assert self._executor is not None
        output = self._executor(at.network_inputs())
        op_logits, residual, time_logits = (values.unflatten(0, at.there.shape) for values in output)
        chances = op_logits.softmax(-1).amax(-1)
        if self.settings.decode == "sample":
            op_logits, time_logits = (logits + self._noise(logits) for logits in (op_logits, time_logits))
        quantity, price = residual.to(self.mornings.dtype).unbind(-1)
        day = time_logits.argmax(-1).to(self.mornings.dtype)
        decision = Decision(op_logits.argmax(-1), quantity, price, day)
        strength = alpha if self.settings.modulation else 0.0
        return wishes_of(at, alpha, decision, strength, time_logits.to(self.mornings.dtype)), chances

    def _noise(self, logits: Tensor) -> Tensor:
        """Gumbel noise: added to logits, the largest is a draw from their softmax."""
        draws = torch.rand(logits.shape, generator=self.generator, device=logits.device)
        return -torch.log(-torch.log(draws.clamp(1e-12, 1 - 1e-7)))


def _everywhere(market: Market, rows: Rows, values: Tensor) -> Tensor:
    """Values [N, ...] of rows as [B, L, A, ...]; 0 elsewhere."""
    shape = (*market.setup.exists.shape, *values.shape[1:])
    found = torch.zeros(shape, dtype=values.dtype, device=values.device)
    found[rows.seat] = values
    return found
