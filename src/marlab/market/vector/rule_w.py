"""Rule W in the vector market: the rules of play themselves, asked for all of its factories at once.

`Memory` keeps what such a factory remembers: the offers of today and yesterday, faded and summed by delivery day, and
the records of its partners. `RuleW` is told about every morning and every half-round, and decides as
`LitaAgentHRL(mode="heuristic")` does.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from marlab.market.logs.daystate import DayState
from marlab.market.rules import features, goals, l1, plan, records, rule_w
from marlab.market.rules.bargain import LAST_ROUND, RuleOptions
from marlab.market.rules.executor import HeuristicL4Coordinator
from marlab.market.rules.l1 import Action, L1Options
from marlab.market.rules.offers import ROUNDS as YESTERDAY
from marlab.market.rules.offers import OfferSlots
from marlab.market.rules.prospects import Prospects, prospects
from marlab.market.rules.records import Records
from marlab.market.vector.books import HORIZON, SLOTS
from marlab.market.vector.market import Market
from marlab.market.vector.rounds import HALVES, ROUNDS, Moves, Ranges, Threads
from marlab.market.vector.seats import CONSUMERS, SUPPLIERS, Policy, Rows, Seats, movers
from marlab.market.vector.views import Mornings

Tensor = Any
"""A torch.Tensor. The rules work on numpy arrays and tensors alike; their types name the former."""
FADES = 0.3
"""How fast trust in an offer fades with rounds, as in `rules.offers`."""
RULES = L1Options(rules="economic", short_reserve=True)
REPORT_DAYS = 5
"""Factories publish their cash on every fifth day."""


class Memory:
    """Offers and partners of all factories, [B, L, A, 2, ...] by side."""

    def __init__(self, market: Market, dtype: torch.dtype) -> None:
        self.seats, self.dtype = Seats(market), dtype
        seats, device = market.setup.lines.shape, market.device
        threads = market.threads.units.shape
        like = torch.zeros((), dtype=dtype, device=device)
        self.records: Records = records.empty((*seats, 2, market.wide), like)
        # offers of every half-round, [HALVES, B, P, C, R]; units 0: none was made
        self.units = torch.zeros((HALVES, *threads), dtype=torch.int32, device=device)
        self.price, self.ahead = torch.zeros_like(self.units), torch.zeros_like(self.units)
        self.sums = torch.zeros((3, *seats, 2, SLOTS), dtype=dtype, device=device)  # weight, weighted price, pressure
        self.latest = torch.full(seats, -math.inf, dtype=dtype, device=device)  # clock of the latest known offer
        self._strangers = records.empty((1, 1, 1, 1, 1), like)
        self._before: tuple[Tensor, Threads, Ranges] | None = None  # yesterday: threads in the morning and evening
        self._opened = market.threads.running
        self.condensed = records.condensed(self.records)
        self._prospects = self._weighed(market)

    def open(self, market: Market) -> None:
        """A new morning: yesterday's negotiations enter the records, its offers fade; first days begin empty."""
        fresh = (market.day == 0)[:, None, None, None, None]
        if self._before is not None:
            known = self._remembered(market, *self._before)
            self.records = Records(*(_first(fresh, new, old) for new, old in zip(self._strangers, known)))
        self.sums, self.latest = torch.zeros_like(self.sums), torch.full_like(self.latest, -math.inf)
        for half in range(HALVES):
            made = (self.units[half] > 0) & (market.day > 0)[:, None, None, None]
            self._add(market, made, (self.units[half], self.price[half], self.ahead[half] - 1), half, -YESTERDAY)
        self.units.zero_()
        self._opened = market.threads.running
        self.condensed = records.condensed(self.records)
        self._prospects = self._weighed(market)

    def hear(self, market: Market) -> None:
        """The offers of the half-round before, which are on the table now."""
        half, threads = market.half - 1, market.threads
        if half >= 0:
            self.units[half] = threads.units * threads.running
            self.price[half], self.ahead[half] = threads.price, threads.ahead
            if half < HALVES - 1:
                self._add(market, threads.running, (threads.units, threads.price, threads.ahead), half, 0)

    def outlook(self, rows: Rows) -> Prospects:
        """What consumers may still offer to rows [N, A]."""
        return Prospects(*(values[rows.seat] for values in self._prospects))

    def _weighed(self, market: Market) -> Prospects:
        """Earlier offers of all consumers [B, L, A, A, R] at today's prices."""
        low, high = (
            torch.nn.functional.pad(bound[..., 0], (0, 0, 0, 1)).to(self.dtype)[..., None]  # [B, L, 1, 1]
            for bound in (market.ranges.price_low, market.ranges.price_high)
        )
        cost = market.setup.cost.to(self.dtype)[..., None]  # [B, L, A, 1]
        return prospects(self.records.take((slice(None),) * 3 + (CONSUMERS,)), low, high, cost)

    def close(self, market: Market) -> None:
        """The end of the negotiations: what they came to is remembered tomorrow."""
        self.hear(market)
        self._before = self._opened, market.threads, market.ranges

    def _add(
        self, market: Market, made: Tensor, terms: tuple[Tensor, Tensor, Tensor], half: int, shift: int
    ) -> None:  # fmt: skip
        """Offers of one half-round into the sums of those who made them and of those who heard them."""
        at = made.nonzero(as_tuple=True)
        if not len(at[0]):
            return
        world, k, caller, responder = at
        quantity, money, day = (values[at].to(self.dtype) for values in terms)
        buying = self.seats.buyer_calls[k]
        ends = (
            (torch.where(buying, k + 1, k), caller, torch.where(buying, SUPPLIERS, CONSUMERS), half % 2 == 0),
            (torch.where(buying, k, k + 1), responder, torch.where(buying, CONSUMERS, SUPPLIERS), half % 2 == 1),
        )
        for level, place, side, mine in ends:
            if not mine and half == HALVES - 1:
                continue  # nobody hears the last offer of a day
            clock = (half // 2 if mine else (half + 1) // 2) + shift
            self._add_up(market, (world, level, place), side, quantity, money, day, float(clock))

    def _add_up(
        self, market: Market, seat: tuple[Tensor, Tensor, Tensor], side: Tensor, units: Tensor, price: Tensor,
        day: Tensor, clock: float,
    ) -> None:  # fmt: skip
        world, level, _ = seat
        self.latest[seat] = torch.clamp(self.latest[seat], min=clock)
        spot_in = market.prices[world, level].to(self.dtype).clamp(min=1)
        spot_out = market.prices[world, level + 1].to(self.dtype).clamp(min=1)
        good = torch.where(side == CONSUMERS, price / spot_out, spot_in / price.clamp(min=1)).clamp(0.5, 2)
        weight = math.exp(FADES * clock) * torch.sqrt(units / (units + 10))
        weight = weight * ((day >= 0) & (day < SLOTS))
        slot = day.clamp(0, SLOTS - 1).long()
        for sums, amount in zip(self.sums, (weight, weight * price, weight * units * good)):
            sums.index_put_((*seat, side, slot), amount, accumulate=True)

    def slots(self, rows: Rows) -> OfferSlots:
        """Sums [N, 2, S] of the offers known to rows, faded by age."""
        latest = self.latest[rows.seat]
        faded = torch.where(latest > -math.inf, torch.exp(-FADES * latest), 0.0)[:, None, None]
        return OfferSlots(*(sums[rows.seat] * faded for sums in self.sums))

    def heard(self, market: Market, rows: Rows, side: int) -> Action:
        """The partners' offers of today [N, A, T]: units, prices, days from today; nan where there is none."""
        halves = range((market.half + 1) % 2, market.half, 2)
        if not len(halves):
            none = torch.full((len(rows), market.wide, 1), math.nan, dtype=self.dtype, device=market.device)
            return Action(none, none, none)
        cut = slice(halves[0], market.half, 2)
        columns = [
            values[cut].flatten(1)[:, rows.threads[:, side]].permute(1, 2, 0).to(self.dtype)
            for values in (self.units, self.price, self.ahead)
        ]
        missing = columns[0] == 0
        return Action(*(column.masked_fill(missing, math.nan) for column in columns))

    def _remembered(self, market: Market, opened: Tensor, before: Threads, ranges: Ranges) -> Records:
        """The records [B, L, A, 2, A] after yesterday."""

        def every(values: Tensor) -> Tensor:
            return self.seats.every(values).to(self.dtype)

        there = self.seats.every(opened)
        low, high = (every(values.expand(opened.shape)) for values in (ranges.price_low, ranges.price_high))
        units, price = every(before.agreed_units), every(before.agreed_price)
        ended = every(torch.where(before.running, HALVES, before.ended_half))
        rounds = (torch.div(ended, 2, rounding_mode="floor") + 1).clamp(max=ROUNDS)
        day = (market.day - 1).to(self.dtype)[:, None, None, None, None]
        known = records.after_negotiations(self.records, there, day, rounds, units, price, low, high)
        known = records.after_reports(known, *self._reports(market, there))
        return records.after_talks(known, there, *self._talks(market, ended, units, low, high))

    def _reports(self, market: Market, there: Tensor) -> tuple[Tensor, Tensor]:
        """Whose cash was published yesterday evening [B, L, A, 2, A], and how much."""
        published = ((market.day - 1) % REPORT_DAYS == 0)[:, None, None, None, None]
        cash = torch.zeros_like(there, dtype=self.dtype)
        exists = torch.zeros_like(there)
        for level in range(market.levels):
            for side, other in ((SUPPLIERS, level - 1), (CONSUMERS, level + 1)):
                if 0 <= other < market.levels:
                    cash[:, level, :, side] = market.balance[:, other, None].to(self.dtype)
                    exists[:, level, :, side] = market.setup.exists[:, other, None]
        return exists & published, cash

    def _talks(
        self, market: Market, ended: Tensor, agreed: Tensor, low: Tensor, high: Tensor
    ) -> tuple[Action, Tensor, Tensor, Tensor]:
        """Yesterday's negotiations as both sides saw them: offers heard, offers made, units taken, who left."""
        calls = torch.zeros((market.levels, 1, 1, 1), dtype=torch.bool, device=market.device)
        calls[movers(market.levels, 0)] = True
        heard = torch.full((3, *agreed.shape, ROUNDS), math.nan, dtype=self.dtype, device=market.device)
        made, last = torch.zeros_like(agreed), torch.zeros_like(agreed)
        for half in range(HALVES):
            units = self.seats.every(self.units[half]).to(self.dtype)
            mine = (units > 0) & (calls == (half % 2 == 0))
            made, last = made + mine, torch.where(mine, units, last)
            if half < HALVES - 1:  # nobody hears the last offer
                position = (self.seats.every(self.price[half]) - low) / (high - low).clamp(min=1)
                terms = (units, position, self.seats.every(self.ahead[half]).to(self.dtype))
                for column, values in zip(heard[..., half // 2].unbind(0), terms):
                    column.copy_(torch.where((units > 0) & ~mine, values, column))
        # the other one ended it in answer to my offer, by taking it or by leaving
        answered = (made > 0) & (ended < HALVES) & (calls != (ended % 2 == 0))
        taken = torch.where(answered & (last == agreed), agreed, 0.0)
        left = answered & (agreed == 0) & (torch.div(ended - 1, 2, rounding_mode="floor") < LAST_ROUND)
        return Action(*heard), made, taken, left


class RuleW(Policy):
    """The policy."""

    def __init__(self, market: Market, options: RuleOptions | None = None, dtype: torch.dtype | None = None) -> None:
        self.options = options or RuleOptions()
        self.mornings = Mornings(market, dtype)
        self.memory = Memory(market, self.mornings.dtype)
        self._features = features.FeatureOptions(horizon=HORIZON)
        self._goal: Tensor | None = None

    def open(self, market: Market) -> None:
        """Every morning, after the market's `open_day`."""
        self.memory.open(market)
        self.mornings.open(market)
        rows = self.memory.seats.rows(market.setup.exists)
        state = self.mornings.at(market, rows, alive=True)
        goal: Tensor = goals.economic_goal(state, l1.caps(state, RULES))
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
        state = self.mornings.at(market, rows, alive=True)
        caps = l1.caps(state, RULES)
        running = rows.gather(market.threads.running) & rows.sides[:, :, None]  # [N, 2, A]
        alpha = self._weights(market, rows, state, caps, running)
        moves, places = [], []
        for side, selling in ((SUPPLIERS, False), (CONSUMERS, True)):
            there = running[:, side]
            some = there.any(1).nonzero()[:, 0]  # rows with something to answer on this side
            if not len(some):
                continue
            who, here, weights = rows.take(some), there[some], alpha[some, side]
            now, limits = _taken(state, some), l1.Caps(*(values[some] for values in caps))
            issue = l1.issue_of(now, selling)
            threads = self._threads(market, who, side, here)
            if selling:
                answers = self.sale(market, who, now, limits, threads, issue, weights)
            else:
                wishes = rule_w.buy(now, limits, threads, issue, weights)
                answers = plan.plan(now, RULES, selling, threads, issue, wishes, explain=False)
            moves.append([values[here].to(torch.int32) for values in answers[:4]])
            places.append(who.threads[:, side][here])
        return Moves(*(torch.cat(parts) for parts in zip(*moves))), torch.cat(places)

    def sale(
        self, market: Market, rows: Rows, state: DayState, caps: l1.Caps, threads: plan.Threads, issue: l1.Issue,
        alpha: Tensor,
    ) -> plan.Answers:  # fmt: skip
        """What these rows answer their consumers; `alpha` [N, A]: L4's weights. A learner answers otherwise."""
        wishes, _ = rule_w.sell(state, caps, threads, issue, alpha, self.options)
        return plan.plan(state, RULES, True, threads, issue, wishes, explain=False)

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
        known = self.memory.condensed.take((*rows.seat, side))
        before = self.memory.outlook(rows) if side == CONSUMERS else None
        return plan.Threads(
            there, offered.clone(), received, Action(nothing, nothing, nothing), heard, offered, known, before,
            market.half // 2,
        )  # fmt: skip

    def _weights(self, market: Market, rows: Rows, state: DayState, caps: l1.Caps, running: Tensor) -> Tensor:
        """L4's weights [N, 2, A] over the threads of both sides."""
        dtype, threads = self.mornings.dtype, market.threads
        there = running.flatten(1)  # [N, 2 A]
        selling = torch.arange(2, device=there.device).repeat_interleave(market.wide) == CONSUMERS
        selling = selling.expand(there.shape)
        rounds = torch.full(there.shape, float(market.half // 2), dtype=dtype, device=there.device)
        base = l1.baseline(state.per_thread(), caps.per_thread(), selling, RULES, rounds)
        latest = [rows.gather(v).flatten(1).to(dtype) for v in (threads.units, threads.price, threads.ahead)]
        missing = ~there | (latest[0] == 0)
        last = Action(*(values.masked_fill(missing, math.nan) for values in latest))
        time = (rounds + 1) / (ROUNDS + 1)
        assert self._goal is not None
        talks = features.Negotiations(selling, base, None, None, last, None, time)
        slots = self.memory.slots(rows)
        wanted = features.priorities(state, slots, self._features, self._goal[rows.seat], talks)
        days = features.latest_day(last.day, base.day, HORIZON)
        alpha: Tensor = HeuristicL4Coordinator().weights(days, wanted, there)
        return alpha.view(running.shape)


def _taken(state: DayState, rows: Tensor) -> DayState:
    return DayState(*(values[rows] for values in state))


def _first(fresh: Tensor, blank: Tensor, known: Tensor) -> Tensor:
    """Records where a world goes on, blank ones where it has just begun."""
    return torch.where(fresh.reshape(*fresh.shape, *(1,) * (known.ndim - fresh.ndim)), blank, known)
