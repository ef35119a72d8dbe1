"""The shortest ways as numbers that a network can read: nothing but the map, worked out."""

from __future__ import annotations

from functools import reduce
from operator import or_

import torch
from torch import Tensor

from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.maps import UNREACHABLE
from marlab.hunt.game.rules import STAY, Game, State

FAR = 15
"""Distances are told up to this one; whatever is farther looks as far."""


def ways_size(game: GameConfig) -> int:
    """Numbers of a seat: for each kind of prey four moves, and how far every player is from it."""
    return len(game.prey_kinds) * (STAY + game.players)


def ways(game: Game, state: State, seats: Tensor | None = None) -> Tensor:
    """[B, L, W] float32 of `seats` ([L], or [B, L]; None: all), for each kind of prey: which moves come nearer to the
    nearest one, and the closeness 1 (there) to 0 (far, gone, or no such prey) of every player, itself first."""
    path = torch.where(state.prey_alive.unsqueeze(1), game.paths(state), UNREACHABLE << 4)  # [B, n, m]
    looking = torch.arange(game.players, device=path.device) if seats is None else seats
    looking = looking.expand(state.batch, -1)  # [B, L]
    order = game.ego[looking]  # [B, L, n]
    parts = []
    for columns in path.split(game.config.prey_kinds, 2):
        each = columns.unbind(2)
        near = reduce(torch.minimum, [c >> 4 for c in each])  # [B, n] steps to the nearest one
        moves = reduce(or_, [c * ((c >> 4) == near) for c in each])  # [B, n] one bit per move that comes nearer
        reachable = (near < UNREACHABLE) & state.alive
        mine = (moves * reachable).gather(1, looking)  # [B, L]
        close = (1 - near.clamp_max(FAR) / FAR) * reachable
        around = close.gather(1, order.flatten(1)).view(order.shape)
        parts += [torch.stack([(mine >> a) & 1 for a in range(STAY)], 2).float(), around]
    return torch.cat(parts, 2)
