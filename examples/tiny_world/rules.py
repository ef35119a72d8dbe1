"""The rules: pure functions of tensors. B rings, two walkers on each; nothing here remembers or draws by itself."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot

MOVES = 3  # back, stay, forward


class State(NamedTuple):
    """All there is to know about B rings."""

    cells: Tensor  # [B, 2] int64: where the two walkers are
    time: Tensor  # [B] int64: steps since the start


def start(rings: int, n_cells: int, generator: torch.Generator) -> State:
    """Two walkers on different cells, all pairs equally likely."""
    where, device = (rings,), generator.device
    first = torch.randint(n_cells, where, generator=generator, device=device)
    ahead = torch.randint(1, n_cells, where, generator=generator, device=device)
    return State(torch.stack([first, (first + ahead) % n_cells], -1), torch.zeros_like(first))


def step(state: State, moves: Tensor, n_cells: int) -> State:
    """Both walk at once, moves [B, 2] in 0 .. 2. Walkers who swap cells pass each other and have not met."""
    return State((state.cells + moves - 1) % n_cells, state.time + 1)


def met(state: State) -> Tensor:
    """[B] bool: both stand on one cell."""
    return state.cells[:, 0] == state.cells[:, 1]


def observe(state: State, n_cells: int) -> Tensor:
    """[B, 2, n_cells]: for each walker, how far ahead of it the other one is, as a single 1 among zeros."""
    ahead = (state.cells.flip(-1) - state.cells) % n_cells
    return one_hot(ahead, n_cells).float()


def fewest_steps(state: State, n_cells: int) -> Tensor:
    """[B]: steps until they meet if both do their best. The way between them shrinks by at most two a step."""
    ahead = (state.cells[:, 1] - state.cells[:, 0]) % n_cells
    return (torch.minimum(ahead, n_cells - ahead) + 1) // 2


def choose(where: Tensor, a: State, b: State) -> State:
    """Ring by ring: `a` where the mask [B] is True, `b` elsewhere."""
    return State(torch.where(where[:, None], a.cells, b.cells), torch.where(where, a.time, b.time))
