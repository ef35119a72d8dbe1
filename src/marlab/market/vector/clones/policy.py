"""Clones at play: the factories of several experts answered together, one partner after the other.

A factory's answers depend on each other, so the partners of a side are answered in their order, each knowing what was
answered before it; both sides of a factory go in step. Everything is drawn from the given generator.
"""

from __future__ import annotations

import torch
from torch import Tensor

from marlab.market.vector.clones import network
from marlab.market.vector.clones.inputs import Inputs, Watch, added
from marlab.market.vector.clones.network import Weights
from marlab.market.vector.market import Market
from marlab.market.vector.rounds import ACCEPT, END, OFFER, Moves
from marlab.market.vector.seats import Policy, Rows


class Clones(Policy):
    """The policy. `expert` [B, L, A]: which expert's weights a factory plays; what it is elsewhere does not matter."""

    def __init__(self, market: Market, weights: Weights, expert: Tensor, generator: torch.Generator | None) -> None:
        self.weights = {name: values.to(market.device, torch.float32) for name, values in weights.items()}
        self.experts = len(self.weights["row"])
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
        sides = self._grouped(seen, self.expert[rows.seat])
        there = sides < 2 * len(rows)  # [E, n]; the others fill up
        at = torch.where(there, sides, 0)
        running = _sides(seen.running)[at] & there[..., None]  # [E, n, A]
        op, units, price, ahead = self._answers(market, seen, at, sides, running)
        chosen = running.flatten().nonzero()[:, 0]
        moves = Moves(*(values.flatten()[chosen].to(torch.int32) for values in (op, units, price, ahead)))
        return moves, _sides(rows.threads)[at].flatten()[chosen]

    def _grouped(self, seen: Inputs, expert: Tensor) -> Tensor:
        """The sides with running threads (row * 2 + side) by expert, [E, n]; 2 N where an expert has fewer."""
        sides = seen.running.any(2).flatten().nonzero()[:, 0]
        if self.experts == 1:
            return sides[None]
        whose = expert[sides // 2]
        whose, order = whose.sort(stable=True)
        count = torch.bincount(whose, minlength=self.experts)
        place = torch.arange(len(sides), device=sides.device) - (count.cumsum(0) - count)[whose]
        out = torch.full((self.experts, int(count.max())), 2 * len(expert), device=sides.device)
        out[whose, place] = sides[order]
        return out

    def _answers(
        self, market: Market, seen: Inputs, at: Tensor, sides: Tensor, running: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Operator, units, price and day [E, n, A] of the sides at `at` [E, n]."""
        weights, row = self.weights, at // 2
        given = network.first_layer(
            weights, seen.row[row], _sides(seen.side)[at], _sides(seen.thread)[at]
        )  # [E, n, A, H]
        on_table = _sides(seen.on_table)[at]
        low, high = _sides(seen.price_low)[at][..., 0], _sides(seen.price_high)[at][..., 0]
        lots, days = seen.units_max[row][..., 0, 0], seen.ahead_max[row][..., 0, 0] + 1
        offered = [_sides(values)[at] for values in (seen.table_units, seen.table_ahead)]
        sums = torch.zeros((2 * len(seen.row) + 2, 5), device=given.device)
        other = sides ^ 1
        chance = torch.rand((*running.shape, 5), device=given.device, generator=self.generator)
        answers = []
        for j in range(market.wide):
            hidden = network.trunk(weights, given[:, :, j], torch.cat([sums[sides], sums[other]], -1), seen.round)
            found = network.heads(weights, hidden, seen.round)
            leaves = chance[:, :, j, 0] < torch.sigmoid(found.leave)
            accepts = ~leaves & on_table[:, :, j] & (chance[:, :, j, 1] < torch.sigmoid(found.accept))
            day = network.drawn(network.only(found.day, days), chance[:, :, j, 2])
            lot = network.drawn(network.only(network.lot_logits(weights, hidden, day), lots), chance[:, :, j, 3])
            position = network.drawn(network.price_logits(weights, hidden, day, lot), chance[:, :, j, 4])
            op = torch.where(leaves, END, torch.where(accepts, ACCEPT, OFFER))
            answers.append(torch.stack([op, lot + 1, network.price_of(position, low, high).long(), day]))
            units = torch.where(accepts, offered[0][:, :, j], lot + 1)
            ahead = torch.where(accepts, offered[1][:, :, j], day)
            here = running[:, :, j]
            sums[sides] += added(accepts & here, ~accepts & ~leaves & here, units, ahead)
        op, units, price, ahead = torch.stack(answers, -1)
        return op, units, price, ahead


def _sides(values: Tensor) -> Tensor:
    """[N, 2, ...] as [2 N, ...]."""
    return values.flatten(0, 1)
