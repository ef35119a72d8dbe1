"""The network of a clone: two hidden layers, and heads for leaving, accepting, the day, the lot and the price.

Leaving is decided first, by a head with a number of its own for every round (patience is what matters most to a
seller); then whether to accept; then an offer: its day, its lot given the day, its price given both.

Weights of several experts are stacked, [E, ...]. `Stacked` applies them to equally many rows of each expert, as fitting
does, `Grouped` to rows in the order of experts, as play does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from marlab.market.vector.books import SLOTS
from marlab.market.vector.clones.inputs import ALL
from marlab.market.vector.rounds import ROUNDS

LOTS, PRICES = 30, 11
"""Lots of 1 to 30 units; positions of the price between the lowest and the highest of the day."""
GIVEN = 64
"""Units between the trunk and a head that is told earlier choices."""
IMPOSSIBLE = -1e9
HEADS = (1, 1, SLOTS, GIVEN, GIVEN)
"""Outputs of the trunk: leave, accept, day, and what the heads of lot and price begin with."""
TABLES = ("round", "leave_round", "lot_day", "price_day", "price_lot")
"""Weights that are looked up, not multiplied."""

Weights = dict[str, Tensor]


def shapes(hidden: int) -> dict[str, tuple[int, int]]:
    """The shape of every weight of one expert."""
    return {
        "inputs": (ALL, hidden), "round": (ROUNDS, hidden), "middle": (hidden, hidden), "middle_bias": (1, hidden),
        "heads": (hidden, sum(HEADS)), "heads_bias": (1, sum(HEADS)), "leave_round": (ROUNDS, 1),
        "lot_day": (SLOTS, GIVEN), "lot": (GIVEN, LOTS), "lot_bias": (1, LOTS),
        "price_day": (SLOTS, GIVEN), "price_lot": (LOTS, GIVEN), "price": (GIVEN, PRICES), "price_bias": (1, PRICES),
    }  # fmt: skip


def new_weights(experts: int, hidden: int, generator: torch.Generator) -> Weights:
    """Small random weights; tables and biases begin at 0."""
    weights = {}
    for name, (rows, columns) in shapes(hidden).items():
        first = torch.randn((experts, rows, columns), generator=generator) / math.sqrt(rows)
        weights[name] = torch.zeros_like(first) if name in TABLES or name.endswith("_bias") else first
    return weights


class Layers(Protocol):
    """How weights meet rows."""

    def linear(self, rows: Tensor, name: str) -> Tensor:
        """Rows times a matrix, with its bias if there is one."""

    def row(self, name: str, index: Tensor | int) -> Tensor:
        """Entries of a table, one for every row."""


class Stacked:
    """Equally many rows of every expert: [E, n, ...]."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights

    def linear(self, rows: Tensor, name: str) -> Tensor:
        bias = self.weights.get(f"{name}_bias")
        matrix = self.weights[name]
        return torch.bmm(rows, matrix) if bias is None else torch.baddbmm(bias, rows, matrix)

    def row(self, name: str, index: Tensor | int) -> Tensor:
        table = self.weights[name]
        if isinstance(index, int):
            return table[:, index, None]
        return table.gather(1, index[..., None].expand(*index.shape, table.shape[-1]))


class Grouped:
    """Rows [n, ...] in the order of experts: `counts` of each."""

    def __init__(self, weights: Weights, counts: Sequence[int], expert: Tensor) -> None:
        self.weights, self._expert = weights, expert
        self._counts = [(e, count) for e, count in enumerate(counts) if count]

    def linear(self, rows: Tensor, name: str) -> Tensor:
        bias, matrix = self.weights.get(f"{name}_bias"), self.weights[name]
        parts = rows.split([count for _, count in self._counts])
        out = [
            part @ matrix[e] if bias is None else torch.addmm(bias[e, 0], part, matrix[e])
            for part, (e, _) in zip(parts, self._counts)
        ]
        return out[0] if len(out) == 1 else torch.cat(out)

    def row(self, name: str, index: Tensor | int) -> Tensor:
        return self.weights[name][self._expert, index]


class Heads(NamedTuple):
    """Logits [...], and what the heads of lot and price begin with."""

    leave: Tensor
    accept: Tensor
    day: Tensor  # [..., SLOTS]
    lot: Tensor  # [..., GIVEN]
    price: Tensor  # [..., GIVEN]


def heads(layers: Layers, inputs: Tensor, rounds: Tensor | int) -> Heads:
    """From inputs [..., ALL] and their rounds [...], or one round for all."""
    hidden = torch.relu(layers.linear(inputs, "inputs") + layers.row("round", rounds))
    hidden = torch.relu(layers.linear(hidden, "middle"))
    leave, accept, day, lot, price = layers.linear(hidden, "heads").split(HEADS, -1)
    return Heads((leave + layers.row("leave_round", rounds))[..., 0], accept[..., 0], day, lot, price)


def lot_logits(layers: Layers, found: Heads, day: Tensor) -> Tensor:
    """Logits [..., LOTS] of a lot for this day; entry 0 is one unit."""
    return layers.linear(torch.relu(found.lot + layers.row("lot_day", day)), "lot")


def price_logits(layers: Layers, found: Heads, day: Tensor, lot: Tensor) -> Tensor:
    """Logits [..., PRICES] of the price's position, for this day and lot (lot 0 is one unit)."""
    told = layers.row("price_day", day) + layers.row("price_lot", lot)
    return layers.linear(torch.relu(found.price + told), "price")


def only(logits: Tensor, count: Tensor) -> Tensor:
    """The first `count` entries are possible."""
    return logits.masked_fill(torch.arange(logits.shape[-1], device=logits.device) >= count[..., None], IMPOSSIBLE)


def drawn(logits: Tensor, chance: Tensor) -> Tensor:
    """One entry of the last axis by its probability; `chance` is uniform in [0, 1)."""
    reached = torch.softmax(logits, -1).cumsum(-1)
    return (reached <= (chance * reached[..., -1])[..., None]).sum(-1).clamp(max=logits.shape[-1] - 1)


def price_of(position: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The whole price nearest to a position 0 .. PRICES - 1."""
    return low + torch.floor(position / (PRICES - 1) * (high - low) + 0.5)


def position_of(price: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The position of a price; `price_of` gives it back where the range has at most PRICES prices."""
    return torch.floor((price - low) / (high - low).clamp(min=1) * (PRICES - 1) + 0.5).clamp(0, PRICES - 1)
