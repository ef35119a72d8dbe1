"""What players see: planes, masks and last actions, always in ego-first order.

Player i sees the players as i, i + 1, ..., around the table, in every field alike. Nothing is computed before it is
asked for, so that rule-based players, who read the state itself, pay for no planes.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from marlab.hunt.game.rules import ABSENT, Game, State


class View:
    """The situation of all players of B games."""

    def __init__(self, game: Game, state: State) -> None:
        self.game, self.state = game, state

    @cached_property
    def mask(self) -> Tensor:
        """[B, n, A] bool: legal actions; all False for players who left."""
        return self.game.legal(self.state)

    @cached_property
    def alive(self) -> Tensor:
        """[B, n, n] bool, ego-first: who is still there."""
        return self.state.alive[:, self.game.ego]

    @cached_property
    def actions(self) -> Tensor:
        """[B, n, n] int64, ego-first: last executed actions, ABSENT for players who are gone."""
        seen = last_actions(self.game, self.state)
        if self.game.config.legacy_global_prev_actions:
            return seen.unsqueeze(1).expand(-1, self.game.players, -1)
        return seen[:, self.game.ego]

    @cached_property
    def time(self) -> Tensor:
        """[B] float32: t / T_max."""
        return self.state.t / self.game.config.final_time

    @cached_property
    def board(self) -> Tensor:
        """[B, H, W, channels] uint8: planes with the players in seat order."""
        first = torch.zeros(1, dtype=torch.int64, device=self.game.device)
        return self.grid_of(first).squeeze(1)  # seat 0 sees the players in seat order

    @cached_property
    def grid(self) -> Tensor:
        """[B, n, H, W, channels] uint8: the planes each player sees, itself first."""
        return self.grid_of(torch.arange(self.game.players, device=self.game.device))

    def grid_of(self, seats: Tensor) -> Tensor:
        """[B, L, H, W, channels] uint8: the planes that `seats` ([L], or [B, L] per game) see."""
        pad, size = self.game.players, self.game.cells * self.game.channels
        rows = draw_rows(self.game, self.state, seats, pad, pad + size)
        return rows[..., pad:].reshape(*rows.shape[:2], *self.game.observation_shape)

    def flat(self, seats: Tensor) -> Tensor:
        """[B, L, D] float32: everything `seats` ([L] or [B, L]) see, in the order of `FlatFields`."""
        return flat_observation(self.game, self.state, seats)[0]


class FlatFields(NamedTuple):
    """Where each field lies in a flat observation."""

    mask: slice  # A values 0 or 1
    actions: slice  # n action numbers 0 to 7, ego-first
    grid: slice  # H * W * channels values 0 or 1, row-major
    time: slice  # 1 value, t / T_max
    alive: slice  # n values 0 or 1, ego-first

    @property
    def size(self) -> int:
        return self.alive.stop


def flat_fields(game: Game) -> FlatFields:
    """The layout of flat observations in this game."""
    height, width, channels = game.observation_shape
    edges = [0]
    for size in (game.actions, game.players, height * width * channels, 1, game.players):
        edges.append(edges[-1] + size)
    return FlatFields(*(slice(a, b) for a, b in pairwise(edges)))


def flat_observation(game: Game, state: State, seats: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Flat observations [B, L, D] float32 and action masks [B, L, A] bool of `seats` ([L], or [B, L]; None: all)."""
    fields = flat_fields(game)
    rows = draw_rows(game, state, seats, fields.grid.start, fields.size)  # bytes: a quarter of the memory to fill
    mask = _seats(game.legal(state), seats)
    rows[..., fields.mask] = mask.to(torch.uint8)
    last = last_actions(game, state).to(torch.uint8)
    legacy = game.config.legacy_global_prev_actions
    rows[..., fields.actions] = last.unsqueeze(1) if legacy else _around(last, game, seats)
    rows[..., fields.alive] = _around(state.alive.to(torch.uint8), game, seats)
    out = rows.float()
    out[..., fields.time] = (state.t / game.config.final_time).view(-1, 1, 1)
    return out, mask


def draw_rows(game: Game, state: State, seats: Tensor | None, first: int, width: int) -> Tensor:
    """[B, L, width] uint8: zeros, with the planes of obstacles, prey and players from place `first` on.

    Every player and prey is one mark. One that is gone is marked among the first `players` places of the row, so
    `first` must be at least that, and the caller writes or drops those places.
    """
    device, n, batch = game.device, game.players, state.batch
    if seats is None:
        seats = torch.arange(n, device=device)
    wide = seats.shape[-1]
    if game.config.max_block_comp:
        template = torch.zeros(game.maps.count, width, dtype=torch.uint8, device=device)
        template[:, first + n : first + game.cells * game.channels : game.channels] = game.maps.blocks
        out = template.index_select(0, state.map).unsqueeze(1).repeat(1, wide, 1)
    else:
        out = torch.zeros(batch, wide, width, dtype=torch.uint8, device=device)
    row = torch.arange(batch * wide, device=device).view(batch, wide).t() * width  # [L, B] where each row begins
    looking = seats.view(-1, 1, 1) if seats.dim() == 1 else seats.t().unsqueeze(1)  # [L, 1, 1 or B]
    place = (torch.arange(n, device=device).view(1, -1, 1) - looking) % n  # [L, n, 1 or B] where each player is seen
    player = (state.cell * game.channels + first) * state.alive  # [B, n]
    prey = (state.prey_cell * game.channels + (first + n + 1 + game.prey_kind)) * state.prey_alive  # [B, m]
    # Built as [L, k, B], the order in memory: a long axis innermost is quick to write.
    memory = out.view(-1)
    memory.index_fill_(0, (prey.t() + row.unsqueeze(1)).flatten(), 1)
    memory.index_fill_(0, ((player.t() + place) + row.unsqueeze(1)).flatten(), 1)
    return out


def last_actions(game: Game, state: State) -> Tensor:
    """[B, n] int64 in seat order: the last executed actions as players see them."""
    if not game.config.legacy_global_prev_actions:
        return torch.where(state.alive, state.last_action, ABSENT)
    # The original kept the hunt that a player left with: the kind of prey that is gone from its last cell.
    taken = (state.cell.unsqueeze(2) == state.prey_cell.unsqueeze(1)) & ~state.prey_alive.unsqueeze(1)
    return torch.where(state.alive, state.last_action, 5 + (taken * game.prey_kind).sum(2))


def _around(field: Tensor, game: Game, seats: Tensor | None) -> Tensor:
    """[B, L, n] a field [B, n] in the order in which each of `seats` sees the players."""
    if seats is None:
        columns = field.unbind(1)
        n = game.players
        return torch.stack([columns[(i + k) % n] for i in range(n) for k in range(n)], 1).view(-1, n, n)
    order = game.ego[seats]  # [(B,) L, n]
    if seats.dim() == 1:
        return field.index_select(1, order.flatten()).view(-1, *order.shape)
    return field.gather(1, order.flatten(1)).view(order.shape)


def _seats(field: Tensor, seats: Tensor | None) -> Tensor:
    """Rows [B, L, ...] of a field [B, n, ...] for `seats` [L] or [B, L]; None stands for all."""
    if seats is None:
        return field
    if seats.dim() == 1:
        return field.index_select(1, seats)
    index = seats.view(*seats.shape, *[1] * (field.dim() - 2)).expand(-1, -1, *field.shape[2:])
    return field.gather(1, index)
