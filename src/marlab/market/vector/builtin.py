"""The league's simplest agents as arrays: who sits where, and Random.

A policy is a function of the market that answers for all threads in which its factories move; `Seated` asks each kind
for its own factories.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from marlab.lab.errors import UserError
from marlab.market.vector.greedy import Greedy
from marlab.market.vector.market import Market
from marlab.market.vector.rounds import ACCEPT, END, HALVES, OFFER, Moves
from marlab.market.vector.seats import Policy, Rows, Seats, moving
from marlab.market.vector.setup import pairs_of
from marlab.market.vector.sync_random import SyncRandom

P_ACCEPT, P_END = 0.1, 0.005
"""How often Random accepts an offer, and how often it leaves instead of answering."""


def random_moves(market: Market, generator: torch.Generator | None) -> Moves:
    """RandomStdAgent in every thread: any outcome is as likely as any other, whatever was offered."""
    ranges, like = market.ranges, market.threads.units
    chance = torch.rand(like.shape, device=like.device, generator=generator)
    if market.half == 0:
        op = torch.full_like(like, OFFER)
    else:
        op = torch.where(chance < P_END + (1 - P_END) * P_ACCEPT, ACCEPT, OFFER)
        op = torch.where(chance < P_END, END, op).to(like.dtype)
    # one number for the whole outcome: whole multiples of its parts are equally likely
    days, prices = ranges.ahead_max + 1, ranges.price_high - ranges.price_low + 1
    pick = torch.rand(like.shape, device=like.device, generator=generator)
    place = pick * days
    ahead = place.to(like.dtype)
    place = (place - ahead) * prices
    price = place.to(like.dtype)
    units = ((place - price) * ranges.units_max).to(like.dtype)
    return Moves(op, units + 1, price + ranges.price_low, ahead)


class Random(Policy):
    """RandomStdAgent for some factories of a market."""

    def __init__(self, generator: torch.Generator | None) -> None:
        self.generator = generator

    def answer(self, market: Market, rows: Rows) -> tuple[Moves, Tensor]:
        """The moves of everybody, and of them those of these rows."""
        moves = random_moves(market, self.generator)
        places = rows.threads[rows.sides]
        return Moves(*(values.reshape(-1)[places] for values in moves)), places


BUILTIN: dict[str, Callable[[torch.Generator | None], Policy]] = {
    "RandomStdAgent": Random,
    "SyncRandomStdAgent": SyncRandom,
    "GreedyStdAgent": Greedy,
}
"""Agents of the simulator that are played here, by their class names."""


def by_name(agent: str, generator: torch.Generator | None) -> Policy:
    """The array version of a built-in agent."""
    if agent not in BUILTIN:
        raise UserError(f"{agent} is not played by the vector market, expected one of: {', '.join(BUILTIN)}.")
    return BUILTIN[agent](generator)


class Seated:
    """Policies by their numbers in `kind` [B, L, A]; number 0 is Random, which needs no rows."""

    def __init__(
        self, market: Market, kind: Tensor, policies: Mapping[int, Policy], generator: torch.Generator | None
    ) -> None:
        self.kind, self.policies, self.generator = kind, dict(policies), generator
        self.seats = Seats(market)
        calling, answering = pairs_of(kind == 0)
        self._any_random = (bool(calling.any()), bool(answering.any()))

    def open(self, market: Market) -> None:
        """After the market's `open_day`."""
        for policy in self.policies.values():
            policy.open(market)

    def close(self, market: Market) -> None:
        """Before the market's `close_day`."""
        for policy in self.policies.values():
            policy.close(market)

    def __call__(self, market: Market) -> Moves:
        """The moves of this half-round."""
        for policy in self.policies.values():
            policy.hear(market)
        if self._any_random[market.half % 2]:
            moves = random_moves(market, self.generator)
        else:
            moves = Moves(*(torch.zeros_like(market.threads.units) for _ in range(4)))
        active = moving(market)
        for number, policy in self.policies.items():
            rows = self.seats.rows(active & (self.kind == number))
            if not len(rows):
                continue
            answers, threads = policy.answer(market, rows)
            for values, answer in zip(moves, answers):
                values.view(-1)[threads] = answer.to(values.dtype)
        return moves


def play(market: Market, policy: Seated, days: int | None = None) -> None:
    """Play whole days, by default to the end of all worlds."""
    played = 0
    while bool(market.playing.any()) and (days is None or played < days):
        market.open_day()
        policy.open(market)
        for _ in range(HALVES):
            market.move(policy(market))
        policy.close(market)
        market.close_day()
        played += 1
