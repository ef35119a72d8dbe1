"""Small operations on batched games, written so that they run over long vectors of games.

Torch reduces along a short axis (players, prey) element by element; adding the slices instead works on whole
batches. It pays when the game index is innermost in memory, which `batch_last` arranges; the results are the
same anyway.
"""

from __future__ import annotations

from functools import reduce
from operator import add, or_

import torch
from torch import Tensor


def batch_last(x: Tensor) -> Tensor:
    """The same [B, k] values with the games next to each other in memory."""
    return x.t().contiguous().t()


def at_least(x: Tensor, number: int) -> Tensor:
    """`x >= number`: a CPU compares two tensors many at a time, but a tensor and a number one by one."""
    return x >= torch.full_like(x, number)


def any_of(x: Tensor, dim: int) -> Tensor:
    """`x.any(dim)` of a bool tensor with a short axis `dim`."""
    if x.shape[dim] == 0:
        return x.any(dim)
    return reduce(or_, x.unbind(dim))


def count_of(x: Tensor, dim: int) -> Tensor:
    """How many are True along a short axis, as uint8."""
    return reduce(add, x.to(torch.uint8).unbind(dim))


def sum_of(x: Tensor, dim: int) -> Tensor:
    """`x.sum(dim)` along a short axis, in the type of `x`."""
    return reduce(add, x.unbind(dim))
