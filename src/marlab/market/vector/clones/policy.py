"""Clones at play: the factories of several experts answered together, one partner after the other.

A factory's answers depend on each other, so the running threads of a side are answered in the order of partners, each
knowing what was answered before it; both sides of a factory go in step. Everything is drawn from the given generator.
"""

from __future__ import annotations

import torch
from torch import Tensor

from marlab.market.vector.clones import network
from marlab.market.vector.clones.inputs import Inputs, Watch, added
from marlab.market.vector.clones.network import Grouped, Weights
from marlab.market.vector.market import Market
from marlab.market.vector.rounds import ACCEPT, END, OFFER, Moves
from marlab.market.vector.seats import Policy, Rows


class Clones(Policy):
    """The policy. `expert` [B, L, A]: which expert's weights a factory plays; what it is elsewhere does not matter."""

    def __init__(self, market: Market, weights: Weights, expert: Tensor, generator: torch.Generator | None) -> None:
        self.weights = {name: values.detach().to(market.device, torch.float32) for name, values in weights.items()}
        self.experts = len(self.weights["inputs"])
        self.expert, self.generator = expert.to(market.device).clamp(0, self.experts - 1).long(), generator
        self.watch = Watch(market)

    def open(self, market: Market) -> None:
        """Every morning, after the market's `open_day`."""
        self.watch.open(market)

    def hear(self, market: Market) -> None:
        """Every half-round, before anybody answers."""
        self.watch.hear(market)

    def close(self, market: Market) -> None:
        """Every evening, before the market's `close_day`."""
        self.watch.close(market)

    @torch.no_grad()
    def answer(self, market: Market, rows: Rows) -> tuple[Moves, Tensor]:
        """The moves of these rows."""
        seen = self.watch.at(market, rows)
        at, counts = self._order(seen, self.expert[rows.seat])
        moves = self._answers(seen, at, counts, self.expert[rows.seat])
        return moves, rows.threads.flatten()[at]

    def _order(self, seen: Inputs, expert: Tensor) -> tuple[Tensor, list[list[int]]]:
        """The running threads (flat places in [N, 2, A]), those that are first on their side first, and within such a
        step by expert; how many there are of each step and expert."""
        wide = seen.running.shape[2]
        at = seen.running.flatten().nonzero()[:, 0]
        place = (seen.running.cumsum(2) - 1).flatten()[at]
        key, order = (place * self.experts + expert[at // (2 * wide)]).sort(stable=True)
        counts = torch.bincount(key, minlength=wide * self.experts).view(wide, self.experts)
        return at[order], counts.tolist()

    def _answers(self, seen: Inputs, at: Tensor, counts: list[list[int]], expert: Tensor) -> Moves:
        """Answers of the threads `at`, step by step."""
        wide = seen.running.shape[2]
        side = at // wide
        known = torch.cat([seen.row[side // 2], _sides(seen.side)[side], seen.thread.flatten(0, 2)[at]], 1)
        whose, here = expert[side // 2], seen.on_table.flatten()[at]
        low, high = _sides(seen.price_low)[side, 0], _sides(seen.price_high)[side, 0]
        lots, days = seen.units_max[side // 2, 0, 0], seen.ahead_max[side // 2, 0, 0] + 1
        units, ahead = seen.table_units.flatten()[at], seen.table_ahead.flatten()[at]
        sums = torch.zeros((2 * len(expert), 5), device=at.device)  # what was answered so far on every side
        chance = torch.rand((len(at), 5), device=at.device, generator=self.generator)
        answers, start = [], 0
        for mine in counts:
            now = slice(start, start + sum(mine))
            start = now.stop
            if now.stop == now.start:
                break
            layers = Grouped(self.weights, mine, whose[now])
            inputs = torch.cat([known[now], sums[side[now]], sums[side[now] ^ 1]], 1)
            found, u = network.heads(layers, inputs, seen.round), chance[now].unbind(1)
            leaves = u[0] < torch.sigmoid(found.leave)
            accepts = ~leaves & here[now] & (u[1] < torch.sigmoid(found.accept))
            day = network.drawn(network.only(found.day, days[now]), u[2])
            lot = network.drawn(network.only(network.lot_logits(layers, found, day), lots[now]), u[3])
            position = network.drawn(network.price_logits(layers, found, day, lot), u[4])
            op = torch.where(leaves, END, torch.where(accepts, ACCEPT, OFFER))
            price = network.price_of(position, low[now], high[now])
            answers.append(torch.stack([op, lot + 1, price.long(), day]))
            taken, when = torch.where(accepts, units[now], lot + 1), torch.where(accepts, ahead[now], day)
            sums[side[now]] += added(accepts, ~accepts & ~leaves, taken, when)  # a side is there once in a step
        return Moves(*torch.cat(answers, 1).to(torch.int32))


def _sides(values: Tensor) -> Tensor:
    """[N, 2, ...] as [2 N, ...]."""
    return values.flatten(0, 1)
