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

from marlab.hunt.game import ABSENT, Game, State


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
        last, alive = self.state.last_action, self.state.alive
        if self.game.config.legacy_global_prev_actions:
            return self._stale_actions().unsqueeze(1).expand(-1, self.game.players, -1)
        return torch.where(alive, last, ABSENT)[:, self.game.ego]

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
        batch, wide = self.state.batch, seats.shape[-1]
        size = self.game.cells * self.game.channels
        planes = torch.empty(batch, wide, size, dtype=torch.uint8, device=self.game.device)
        self._draw_planes(planes, seats)
        return planes.view(batch, wide, *self.game.observation_shape)

    def flat(self, seats: Tensor) -> Tensor:
        """[B, L, D] float32: everything `seats` ([L] or [B, L]) see, in the order of `FlatFields`."""
        fields = flat_fields(self.game)
        out = torch.empty(self.state.batch, seats.shape[-1], fields.size, device=self.game.device)
        out[..., fields.mask] = _seats(self.mask, seats)
        out[..., fields.actions] = _seats(self.actions, seats)
        out[..., fields.time] = self.time.view(-1, 1, 1)
        out[..., fields.alive] = _seats(self.alive, seats)
        self._draw_planes(out[..., fields.grid], seats)
        return out

    def _draw_planes(self, out: Tensor, seats: Tensor) -> None:
        """Fill `out` [B, L, C * channels] with planes: obstacles, then one mark per player and prey."""
        game, state = self.game, self.state
        base = torch.zeros(game.maps.count, game.cells, game.channels, dtype=out.dtype, device=out.device)
        base[:, :, game.players] = game.maps.blocks
        base = base.flatten(1)
        out.copy_((base if game.maps.count == 1 else base[state.map]).unsqueeze(1))
        prey = state.prey_cell * game.channels + (game.players + 1 + game.prey_kind)  # [B, m] places of the marks
        whole = (state.batch, seats.shape[-1], -1)
        out.scatter_(2, prey.unsqueeze(1).expand(whole), state.prey_alive.to(out.dtype).unsqueeze(1).expand(whole))
        order = game.ego[seats]  # [(B,) L, n]: whom each seat sees at which place
        order = order.expand(state.batch, -1, -1).flatten(1)  # [B, L * n]
        place = torch.arange(game.players, device=out.device)
        cell = state.cell.gather(1, order).view(*whole[:2], game.players)
        alive = state.alive.gather(1, order).view_as(cell)
        out.scatter_(2, cell * game.channels + place, alive.to(out.dtype))

    def _stale_actions(self) -> Tensor:
        """[B, n] last actions in seat order, where a player who left keeps the hunt that it left with."""
        state, kind = self.state, self.game.prey_kind
        taken = (state.cell.unsqueeze(2) == state.prey_cell.unsqueeze(1)) & ~state.prey_alive.unsqueeze(1)
        hunt = 5 + (taken * kind).sum(2)
        return torch.where(state.alive, state.last_action, hunt)


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
    """The layout of `View.flat` in this game."""
    height, width, channels = game.observation_shape
    edges = [0]
    for size in (game.actions, game.players, height * width * channels, 1, game.players):
        edges.append(edges[-1] + size)
    return FlatFields(*(slice(a, b) for a, b in pairwise(edges)))


def _seats(field: Tensor, seats: Tensor) -> Tensor:
    """Rows [B, L, ...] of a field [B, n, ...] for `seats` [L] or [B, L]."""
    if seats.dim() == 1:
        return field[:, seats]
    index = seats.view(*seats.shape, *[1] * (field.dim() - 2)).expand(-1, -1, *field.shape[2:])
    return field.gather(1, index)
