"""The network of a clone: two hidden layers, and heads for leaving, accepting, the day, the lot and the price.

All experts are computed at once, so every weight has a leading axis E and work comes as [E, n]. Leaving is decided
first, by a head with a number of its own for every round (patience is what matters most to a seller); then whether to
accept; then an offer: its day, its lot given the day, its price given both.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from marlab.market.vector.books import SLOTS
from marlab.market.vector.clones.inputs import ROW, SIDE, SO_FAR, THREAD
from marlab.market.vector.rounds import ROUNDS

LOTS, PRICES = 30, 11
"""Lots of 1 to 30 units; positions of the price between the lowest and the highest of the day."""
GIVEN = 64
"""Units between the trunk and a head that is told earlier choices."""
IMPOSSIBLE = -1e9

Weights = dict[str, Tensor]


class Heads(NamedTuple):
    """Logits [E, n, ...]."""

    leave: Tensor  # [E, n]
    accept: Tensor  # [E, n]
    day: Tensor  # [E, n, SLOTS]


def shapes(hidden: int) -> dict[str, tuple[int, ...]]:
    """The shape of every weight of one expert."""
    return {
        "row": (ROW, hidden), "side": (SIDE, hidden), "thread": (THREAD, hidden), "so_far": (SO_FAR, hidden),
        "round": (ROUNDS, hidden), "middle": (hidden, hidden), "middle_bias": (1, hidden),
        "accept": (hidden, 1), "accept_bias": (1, 1), "leave": (hidden, 1), "leave_round": (ROUNDS, 1),
        "day": (hidden, SLOTS), "day_bias": (1, SLOTS),
        "lot_in": (hidden, GIVEN), "lot_day": (SLOTS, GIVEN), "lot": (GIVEN, LOTS), "lot_bias": (1, LOTS),
        "price_in": (hidden, GIVEN), "price_day": (SLOTS, GIVEN), "price_lot": (LOTS, GIVEN),
        "price": (GIVEN, PRICES), "price_bias": (1, PRICES),
    }  # fmt: skip


def new_weights(experts: int, hidden: int, generator: torch.Generator) -> Weights:
    """Small random weights; tables and biases begin at 0."""
    weights = {}
    for name, (rows, columns) in shapes(hidden).items():
        drawn = torch.randn((experts, rows, columns), generator=generator) / math.sqrt(rows)
        table = name.endswith("_bias") or name in ("round", "leave_round", "lot_day", "price_day", "price_lot")
        weights[name] = torch.zeros_like(drawn) if table else drawn
    return weights


def first_layer(weights: Weights, row: Tensor, side: Tensor, thread: Tensor) -> Tensor:
    """What the parts [E, n, ROW], [E, n, SIDE] and [E, n, A, THREAD] give to the first layer: [E, n, A, H]."""
    experts, units, wide, size = thread.shape
    shared = torch.bmm(row, weights["row"]) + torch.bmm(side, weights["side"])
    own = torch.bmm(thread.reshape(experts, units * wide, size), weights["thread"])
    return shared[:, :, None] + own.view(experts, units, wide, own.shape[-1])


def trunk(weights: Weights, given: Tensor, so_far: Tensor, rounds: Tensor | int) -> Tensor:
    """The last hidden layer [E, n, H], from one place of `first_layer`; `rounds` [E, n], or one for all."""
    hidden = torch.relu(given + torch.bmm(so_far, weights["so_far"]) + _of_round(weights["round"], rounds))
    return torch.relu(torch.baddbmm(weights["middle_bias"], hidden, weights["middle"]))


def heads(weights: Weights, hidden: Tensor, rounds: Tensor | int) -> Heads:
    """Logits of leaving, of accepting where one stays, and of the day of an offer."""
    leave = torch.bmm(hidden, weights["leave"]) + _of_round(weights["leave_round"], rounds)
    accept = torch.baddbmm(weights["accept_bias"], hidden, weights["accept"])
    return Heads(leave[..., 0], accept[..., 0], torch.baddbmm(weights["day_bias"], hidden, weights["day"]))


def lot_logits(weights: Weights, hidden: Tensor, day: Tensor) -> Tensor:
    """Logits [E, n, LOTS] of a lot for this day [E, n]; entry 0 is one unit."""
    given = torch.relu(torch.bmm(hidden, weights["lot_in"]) + _looked_up(weights["lot_day"], day))
    return torch.baddbmm(weights["lot_bias"], given, weights["lot"])


def price_logits(weights: Weights, hidden: Tensor, day: Tensor, lot: Tensor) -> Tensor:
    """Logits [E, n, PRICES] of the price's position, for this day and lot [E, n] (lot 0 is one unit)."""
    told = _looked_up(weights["price_day"], day) + _looked_up(weights["price_lot"], lot)
    given = torch.relu(torch.bmm(hidden, weights["price_in"]) + told)
    return torch.baddbmm(weights["price_bias"], given, weights["price"])


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


def _of_round(table: Tensor, rounds: Tensor | int) -> Tensor:
    return table[:, rounds][:, None] if isinstance(rounds, int) else _looked_up(table, rounds)


def _looked_up(table: Tensor, index: Tensor) -> Tensor:
    """Rows of tables [E, K, H] by index [E, n]: [E, n, H]."""
    return table.gather(1, index[..., None].expand(*index.shape, table.shape[-1]))
