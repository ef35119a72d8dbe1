"""Stage A: only the order in which a factory serves its selling threads is learnt (L4), by Plackett and Luce.

What is done in a thread stays the rule's; but who comes first takes the room. The order is drawn thread by thread, each
time among those that are left, with chances by their keys: the rule's own order, plus what a small network says.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import nn

from marlab.lab.ppo.nets import ActorCritic
from marlab.lab.ppo.ppo import PPO
from marlab.market.logs.daystate import DayState
from marlab.market.networks.around import AroundNet, untrained
from marlab.market.online.net import arrays_of
from marlab.market.online.player import Player
from marlab.market.rules import around, l1, plan
from marlab.market.rules.l1 import ECONOMIC
from marlab.market.vector.market import Market
from marlab.market.vector.seats import Rows

Tensor = Any
"""A torch.Tensor; the rules' types name numpy's arrays."""


class OrderNet(ActorCritic):
    """[*, K, D] -> [*, K] scores of threads; a critic of the whole round [*, D] -> [*]."""

    def __init__(self, hidden: tuple[int, ...], generator: torch.Generator) -> None:
        super().__init__(around.INPUTS, (1,), hidden, around.INPUTS, "relu", generator)
        last = self.policy[-1]
        assert isinstance(last, nn.Linear)
        nn.init.zeros_(last.weight)  # untrained, it leaves the rule's order as it is

    def logits(self, obs: Tensor) -> Tensor:
        """[*, K, D] -> [*, K]"""
        return self.policy(obs).squeeze(-1)

    def plain(self) -> AroundNet:
        """The same for play in numpy: the rule, with another order."""
        rule = untrained()
        return AroundNet(rule.layers, rule.bonus, order=arrays_of(self.policy))


def log_chance(keys: Tensor, order: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probability [m] of orders [m, K] by keys [m, K], and the entropy [m] of who comes first.

    Threads that are not `there` come last and count for nothing.
    """
    lowest = torch.finfo(keys.dtype).min
    keys = keys.masked_fill(~there, lowest)
    placed, counts = keys.gather(1, order), there.gather(1, order)
    left = placed.flip(1).logcumsumexp(1).flip(1)  # of all that are still to come
    logp = torch.where(counts, placed - left, 0.0).sum(1)
    first = torch.log_softmax(keys, 1)
    return logp, -(first.exp() * first.masked_fill(~there, 0.0)).sum(1)


class OrderRows(NamedTuple):
    """Orders of a rollout, M of them, where there was more than one thread to order."""

    step: Tensor  # [M]
    seat: Tensor  # [M]
    partner: Tensor  # [M] zeros: an order is the factory's, not a thread's
    x: Tensor  # [M, K, D]
    base: Tensor  # [M, K] keys of the rule's own order
    there: Tensor  # [M, K]
    order: Tensor  # [M, K]
    logp: Tensor  # [M]


class OrderPlayer(Player):
    """The rule with a learnt order."""

    @torch.no_grad()
    def sale(
        self, market: Market, rows: Rows, state: DayState, caps: l1.Caps, threads: plan.Threads, issue: l1.Issue,
        alpha: Tensor,
    ) -> plan.Answers:  # fmt: skip
        """The rule's wishes in the order drawn, or in the likeliest."""
        sale = around.look(state, caps, threads, issue, alpha, self.options)
        x = self.seen(market, rows, sale)
        there: Tensor = threads.there
        none: Tensor = torch.zeros_like(alpha)
        base: Tensor = around.order_keys(sale, none)
        base = base.float()
        keys = base + self.net.logits(x)
        drawn = keys
        if self.generator is not None:
            noise = torch.empty_like(keys).exponential_(generator=self.generator)
            drawn = keys - noise.clamp_min_(torch.finfo(noise.dtype).tiny).log_()
        again = around.reordered(sale, drawn)
        if self.notes is not None:
            order: Tensor = again.wishes.order
            logp, _ = log_chance(keys, order, there)
            some = (there.sum(1) > 1).nonzero()[:, 0]
            step = torch.full_like(some, self.notes.step)
            parts = (x, base, there, order, logp)
            seats = self.number[rows.seat]
            self.notes.note(OrderRows(step, seats[some], torch.zeros_like(some), *(part[some] for part in parts)))
        return plan.plan(state, ECONOMIC, True, threads, issue, again.wishes, explain=False)


class OrderPPO(PPO):
    """PPO whose choices are orders."""

    def chances(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor | None]:
        """Log-probability of the orders and entropy of who comes first."""
        keys = batch["base"] + self.net.logits(batch["obs"])
        return *log_chance(keys, batch["actions"], batch["there"]), None
