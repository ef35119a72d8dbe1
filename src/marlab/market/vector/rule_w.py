"""Rule W in the vector market: the rules of play themselves, asked for all of its factories at once.

`RuleW` is told about every morning and every half-round, remembers what `Memory` keeps, and decides as
`LitaAgentHRL(mode="heuristic")` does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from marlab.market.logs.daystate import DayState
from marlab.market.rules import features, goals, l1, plan, records, rule_w
from marlab.market.rules.bargain import ManyOptions, RuleOptions, learnt_options, many_options
from marlab.market.rules.executor import HeuristicL4Coordinator
from marlab.market.rules.habits import Learnt
from marlab.market.rules.l1 import ECONOMIC, Action
from marlab.market.rules.prospects import Fitting, Prospects, prospects
from marlab.market.vector.books import HORIZON
from marlab.market.vector.market import Market
from marlab.market.vector.memory import Memory
from marlab.market.vector.quick.native import Call, learnt_table, native, option_values
from marlab.market.vector.rounds import ROUNDS, Moves
from marlab.market.vector.seats import CONSUMERS, SUPPLIERS, Policy, Rows
from marlab.market.vector.views import Mornings

Tensor = Any
"""A torch.Tensor. The rules work on numpy arrays and tensors alike; their types name the former."""
_NOBODY = records.empty((0, 0))
"""Rule W asks nothing about suppliers."""


class Outlooks:
    """What consumers may still offer to the factories that answer in one kind of half-rounds.

    Those who still negotiate are fewer and fewer in a day, so what was found out in the first half-round is kept, and
    what fits is found out anew only where the room has changed.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._place = torch.zeros(memory.chosen.shape, dtype=torch.long, device=memory.units.device)
        self._who = torch.zeros(0, dtype=torch.long, device=memory.units.device)  # [N] seats it is for
        self._found: Prospects | None = None  # [N, A]
        self._fitting: Fitting | None = None
        self._room: Tensor | None = None  # [N, S] that it is for

    @property
    def all(self) -> Tensor:
        """[N, A]: how many offers are known."""
        assert self._found is not None
        return self._found.all

    def of(self, market: Market, rows: Rows) -> Outlooks:
        """For rows [N]: in the first half-round any, later only some of those before are quick."""
        who = (rows.world * market.levels + rows.level) * market.wide + rows.place
        if market.half < 2 or not self._has(rows, who):
            self._found, self._fitting, self._room = self._weighed(market, rows), None, None
        elif self._found is not None and len(who) < len(self._who):
            kept = self._place[rows.seat]
            self._found = Prospects(*(values[kept] for values in self._found))
            if self._fitting is not None and self._room is not None:
                self._fitting = Fitting(*(values[kept] for values in self._fitting))
                self._room = self._room[kept]
        else:
            return self
        self._who = who
        self._place[rows.seat] = torch.arange(len(rows), device=who.device)
        return self

    def _has(self, rows: Rows, who: Tensor) -> bool:
        if len(who) > len(self._who):
            return False
        place = self._place[rows.seat].clamp(max=len(self._who) - 1)
        return bool((self._who[place] == who).all())

    def fitting(self, room: Tensor) -> Fitting:
        """As `Prospects.fitting`."""
        assert self._found is not None
        if self._fitting is None or self._room is None:
            self._fitting = self._found.fitting(room)
        else:
            changed = (room != self._room).any(1).nonzero()[:, 0]
            if len(changed):
                new = Prospects(*(values[changed] for values in self._found)).fitting(room[changed])
                self._fitting.money[changed], self._fitting.fits[changed] = new.money, new.fits
        self._room = room
        return self._fitting

    def placed(self, market: Market, rows: Rows, room: Tensor) -> tuple[Fitting, Tensor]:
        """As `of` and `fitting` for rows [N] with `room` [N, S], without a copy: all that is known, and where rows are.

        Use either these two or this on a day.
        """
        who = (rows.world * market.levels + rows.level) * market.wide + rows.place
        if market.half < 2 or not self._has(rows, who):
            self._found, self._who = self._weighed(market, rows), who
            self._place[rows.seat] = torch.arange(len(rows), device=who.device)
            self._fitting, self._room = self._found.fitting(room), room.clone()
            return self._fitting, self._place[rows.seat]
        assert self._found is not None and self._fitting is not None and self._room is not None
        at = self._place[rows.seat]
        changed = (room != self._room[at]).any(1).nonzero()[:, 0]
        if len(changed):
            there, now = at[changed], room[changed]
            new = Prospects(*(values[there] for values in self._found)).fitting(now)
            self._fitting.money[there], self._fitting.fits[there], self._room[there] = new.money, new.fits, now
        return self._fitting, at

    def _weighed(self, market: Market, rows: Rows) -> Prospects:
        """Earlier offers of the rows' consumers at today's prices."""
        bounds = (market.ranges.price_low, market.ranges.price_high)  # [B, P, 1, 1]
        below = rows.level.clamp(max=market.levels - 2)  # the last level sells nothing, but may be among the rows
        low, high = (bound[rows.world, below, 0].to(self._memory.dtype) for bound in bounds)
        cost = market.setup.cost[rows.seat].to(self._memory.dtype)[:, None]
        return prospects(self._memory.known(rows, CONSUMERS), low, high, cost)


class RuleW(Policy):
    """The policy."""

    def __init__(
        self, market: Market, options: RuleOptions | None = None, dtype: torch.dtype | None = None,
        chosen: Tensor | None = None, quick: bool = False, habits: Learnt | None = None,
    ) -> None:  # fmt: skip
        """`chosen` [B, L, A]: the seats that it will be asked for, by default any; `quick`: decide by C code, where it
        can be built; answers are the same. `habits`: learnt ones instead of the options."""
        self.options = options or RuleOptions()
        self.mornings = Mornings(market, dtype)
        self._native = native(market, self.mornings.dtype) if quick else None
        self.memory = Memory(market, self.mornings.dtype, chosen, code=self._native)
        self._features = features.FeatureOptions(horizon=HORIZON)
        self._goal: Tensor | None = None
        self._outlooks = Outlooks(self.memory), Outlooks(self.memory)  # of callers, of those who answer
        self._call: tuple[Call, Tensor] | None = None  # while a learner sells
        self._sells_itself = type(self).sale is not RuleW.sale
        self._like: Tensor = torch.zeros((), dtype=self.mornings.dtype, device=market.device)
        self.option_table = self._like.new_tensor([option_values(self.options)])  # [options, O]
        self.option_number: Tensor | None = None  # [B, L, A]: which of them a seat follows; None: the first
        self._many: ManyOptions | None = None  # the same, where they differ
        if habits is not None:
            place = torch.where(market.setup.first, 2 * (market.setup.n_levels == 2)[:, None], 1)  # [B, L]
            self.follow(torch.tensor(list(habits)), place[..., None].expand(market.setup.shape))

    def follow(self, habits: Tensor, number: Tensor) -> None:
        """Play by learnt habits [M, H], rows as `habits.ALL` orders them; `number` [B, L, A]: which row a seat has."""
        habits = habits.to(self._like)
        self.option_table, self._many = learnt_table(habits), learnt_options(habits)
        self.option_number = number.to(self._like.device)

    def vary(self, options: Sequence[RuleOptions], number: Tensor) -> None:
        """Play by several options; `number` [B, L, A]: the place of a seat's options."""
        self.option_table = self._like.new_tensor([option_values(each) for each in options])
        self._many = many_options(options, self._like)
        self.option_number = number.to(self._like.device)

    def options_of(self, rows: Rows) -> RuleOptions | ManyOptions:
        """What these rows follow."""
        if self._many is None or self.option_number is None:
            return self.options
        return self._many.take(self.option_number[rows.seat])

    @property
    def goal(self) -> Tensor:
        """[B, L, A, 16]: today's goals."""
        assert self._goal is not None
        return self._goal

    def open(self, market: Market) -> None:
        """Every morning, after the market's `open_day`."""
        self.memory.open(market)
        self.mornings.open(market)
        rows = self.memory.seats.rows(market.setup.exists & self.memory.chosen)
        state = self.mornings.at(market, rows, alive=True)
        goal: Tensor = goals.economic_goal(state, l1.caps(state, ECONOMIC))
        self._goal = torch.zeros((*market.setup.exists.shape, goal.shape[-1]), dtype=goal.dtype, device=goal.device)
        self._goal[rows.seat] = goal

    def hear(self, market: Market) -> None:
        """Every half-round, before anybody answers."""
        self.memory.hear(market)

    def close(self, market: Market) -> None:
        """Every evening, before the market's `close_day`."""
        self.memory.close(market)

    def answer(self, market: Market, rows: Rows) -> tuple[Moves, Tensor]:
        """The moves of these rows."""
        if self._native is not None:
            return self._quick_answer(market, rows)
        state = self.mornings.at(market, rows, alive=True)
        running = rows.gather(market.threads.running) & rows.sides[:, :, None]  # [N, 2, A]
        alpha = self._weights(market, rows, state, running)
        moves, places = [], []
        for side, selling in ((SUPPLIERS, False), (CONSUMERS, True)):
            there = running[:, side]
            some = there.any(1).nonzero()[:, 0]  # rows with something to answer on this side
            if not len(some):
                continue
            who, here, weights, now = rows, there, alpha[:, side], state
            if len(some) < len(rows):
                who, here, weights = rows.take(some), there[some], weights[some]
                now = self.mornings.at(market, who, alive=True)
            caps, issue = l1.caps(now, ECONOMIC), l1.issue_of(now, selling)
            threads = self._threads(market, who, side, here)
            if selling:
                answers = self.sale(market, who, now, caps, threads, issue, weights)
            else:
                wishes = rule_w.buy(now, caps, threads, issue, weights)
                answers = plan.plan(now, ECONOMIC, selling, threads, issue, wishes, explain=False)
            at = here.flatten().nonzero()[:, 0]
            moves.append(torch.stack([values.flatten()[at].to(torch.int32) for values in answers[:4]]))
            places.append(who.threads[:, side].flatten()[at])
        return Moves(*torch.cat(moves, 1).unbind(0)), torch.cat(places)

    def _quick_answer(self, market: Market, rows: Rows) -> tuple[Moves, Tensor]:
        """The same by C code, factory by factory."""
        assert self._native is not None
        call = self._native.begin(market, self, rows)
        some = call.running[:, CONSUMERS].any(1).nonzero()[:, 0]  # rows with something to answer there
        if len(some) and not self._sells_itself:
            who = rows.take(some)
            call.sell(some, *self._outlooks[market.half % 2].placed(market, who, call.room[some]))
        elif len(some):
            who, there = rows.take(some), call.running[some, CONSUMERS]
            state = self.mornings.at(market, who, alive=True)
            caps, issue = l1.caps(state, ECONOMIC), l1.issue_of(state, True)
            threads = self._threads(market, who, CONSUMERS, there)
            self._call = call, some
            answers = self.sale(market, who, state, caps, threads, issue, call.alpha[some, CONSUMERS])
            self._call = None
            call.moves[:, some, CONSUMERS] = torch.stack([values.to(torch.int32) for values in answers[:4]])
        at = call.running.flatten().nonzero()[:, 0]
        return Moves(*call.moves.flatten(1)[:, at].unbind(0)), rows.threads.flatten()[at]

    def wished(
        self, state: DayState, caps: l1.Caps, threads: plan.Threads, issue: l1.Issue, alpha: Tensor
    ) -> tuple[plan.Wishes, Tensor]:
        """`rule_w.sell` for the rows that are being asked to sell."""
        if self._call is None:
            return rule_w.sell(state, caps, threads, issue, alpha, self.options)
        call, some = self._call
        assert threads.prospects is not None
        before = threads.prospects.fitting(call.room[some])
        return call.wishes(some, before, rule_w.held_back(state, self.options), threads.there)

    def sale(
        self, market: Market, rows: Rows, state: DayState, caps: l1.Caps, threads: plan.Threads, issue: l1.Issue,
        alpha: Tensor,
    ) -> plan.Answers:  # fmt: skip
        """What these rows answer their consumers; `alpha` [N, A]: L4's weights. A learner answers otherwise."""
        wishes, _ = rule_w.sell(state, caps, threads, issue, alpha, self.options_of(rows))
        return plan.plan(state, ECONOMIC, True, threads, issue, wishes, explain=False)

    def _threads(self, market: Market, rows: Rows, side: int, there: Tensor) -> plan.Threads:
        dtype, threads = self.mornings.dtype, market.threads
        table = [
            values.reshape(-1)[rows.threads[:, side]].to(dtype)
            for values in (threads.units, threads.price, threads.ahead)
        ]
        missing = ~there | (table[0] == 0)
        received = Action(*(values.masked_fill(missing, math.nan) for values in table))
        nothing = torch.full_like(table[0], math.nan)
        offered = torch.full_like(nothing, float(market.half // 2))
        heard = self.memory.heard(market, rows, side)
        known, before = _NOBODY, None
        if side == CONSUMERS:
            known = self.memory.partners[side].condensed(rows)
            before = self._outlooks[market.half % 2].of(market, rows)
        return plan.Threads(
            there, offered.clone(), received, Action(nothing, nothing, nothing), heard, offered, known, before,
            market.half // 2,
        )  # fmt: skip

    def _weights(self, market: Market, rows: Rows, state: DayState, running: Tensor) -> Tensor:
        """L4's weights [N, 2, A] over the threads of both sides."""
        dtype, threads = self.mornings.dtype, market.threads
        there = running.flatten(1)  # [N, 2 A]
        selling = torch.arange(2, device=there.device).repeat_interleave(market.wide) == CONSUMERS
        selling = selling.expand(there.shape)
        rounds: Tensor = torch.full(there.shape, float(market.half // 2), dtype=dtype, device=there.device)
        base = Action(rounds, rounds, torch.zeros_like(rounds))
        if market.half == 0:  # later there is an offer on every table, whose day counts
            caps = l1.caps(state, ECONOMIC)
            base = l1.baseline(state.per_thread(), caps.per_thread(), selling, ECONOMIC, rounds)
        latest = [rows.gather(v).flatten(1).to(dtype) for v in (threads.units, threads.price, threads.ahead)]
        missing = ~there | (latest[0] == 0)
        last = Action(*(values.masked_fill(missing, math.nan) for values in latest))
        time = (rounds + 1) / (ROUNDS + 1)
        assert self._goal is not None
        talks = features.Negotiations(selling, base, None, None, last, None, time)
        slots = self.memory.slots(rows)
        wanted = features.priorities(state, slots, self._features, self._goal[rows.seat], talks)
        days = features.latest_day(last.day, base.day, HORIZON)
        # threads of equal weight are served by their places: sums of single precision would make differences of nothing
        alpha: Tensor = HeuristicL4Coordinator().weights(days.double(), wanted.double(), there)
        return alpha.to(dtype).view(running.shape)
