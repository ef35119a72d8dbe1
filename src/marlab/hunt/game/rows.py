"""What the networks of planning agents read: one row of bytes per player and situation.

A row holds the player's legal actions and the planes with itself first. Where a game has obstacles, two-layer
perceptrons do not learn to walk around them from planes alone, so a row can also hold the shortest ways: which moves
come nearer to the nearest stag and to the nearest hare, and how far every player is from them. That is nothing but
the map, worked out.

Letters: B situations, L looking players, n players, A actions, W row width.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_

import torch
from torch import Tensor

from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.maps import UNREACHABLE
from marlab.hunt.game.rules import STAY, Game, State
from marlab.hunt.game.symmetry import symmetries
from marlab.hunt.game.views import draw_rows

FAR = 15
"""Distances are told up to this one; whatever is farther looks as far."""


@dataclass(frozen=True)
class RowLayout:
    """Where things lie in a row: legal actions, the planes (row-major), then the shortest ways."""

    height: int
    width: int
    channels: int
    actions: int
    players: int
    kinds: int  # of prey
    start: int  # where the planes begin
    paths: bool  # whether there are shortest ways

    @property
    def ways(self) -> int:
        """Where the moves that come nearer begin: STAY of them for each kind of prey."""
        return self.start + self.height * self.width * self.channels

    @property
    def distances(self) -> int:
        """Where the distances begin: for each player (itself first) and kind one mark among FAR + 1 places."""
        return self.ways + STAY * self.kinds

    @property
    def size(self) -> int:
        return self.distances + self.players * self.kinds * (FAR + 1) if self.paths else self.ways

    @property
    def marks(self) -> float:
        """About how many places of a row are 1: players, prey and legal actions; distances and nearer moves."""
        return 8.0 + (self.kinds * (self.players + 1.5) if self.paths else 0.0)


def row_layout(game: GameConfig, paths: bool = False) -> RowLayout:
    """The rows of a game. `draw_rows` marks what is gone in the first `players` places, so planes begin after them."""
    start = max(game.actions, game.players)
    kinds = len(game.prey_kinds)
    return RowLayout(game.height, game.width, game.channels, game.actions, game.players, kinds, start, paths)


def encode(game: Game, state: State, seats: Tensor, paths: bool = False) -> tuple[Tensor, Tensor]:
    """Rows [B, L, W] uint8 and legal actions [B, L, A] of `seats` [L]."""
    layout = row_layout(game.config, paths)
    rows = draw_rows(game, state, seats, layout.start, layout.size)
    legal = game.legal(state).index_select(1, seats)
    rows[..., : layout.start] = 0
    rows[..., : layout.actions] = legal.to(torch.uint8)
    if paths:
        mark_paths(layout, rows, game, state, seats)
    return rows, legal


def rows_of_planes(layout: RowLayout, planes: Tensor, legal: Tensor) -> Tensor:
    """Rows [*S, W] uint8 from planes [*S, H, W, C] and legal actions [*S, A], without shortest ways."""
    rows = torch.zeros(*planes.shape[:-3], layout.size, dtype=torch.uint8, device=planes.device)
    rows[..., : layout.actions] = legal.to(torch.uint8)
    rows[..., layout.start : layout.ways] = planes.flatten(-3).to(torch.uint8)
    return rows


def _nearer(game: Game, state: State) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """For each kind of prey, all [B, n]: steps to the nearest one, one bit per move that comes nearer to it, and
    whether the player is there and can reach it."""
    path = torch.where(state.prey_alive.unsqueeze(1), game.paths(state), UNREACHABLE << 4)  # [B, n, m]
    for columns in path.split(game.config.prey_kinds, 2):
        each = columns.unbind(2)
        near = reduce(torch.minimum, [c >> 4 for c in each])
        reachable = (near < UNREACHABLE) & state.alive
        yield near, reduce(or_, [c * ((c >> 4) == near) for c in each]) * reachable, reachable


def mark_paths(layout: RowLayout, rows: Tensor, game: Game, state: State, seats: Tensor) -> None:
    """Write the shortest ways into the rows [B, L, W] of `seats` [L]."""
    order = game.ego.index_select(0, seats)  # [L, n]
    place = torch.arange(layout.players, device=rows.device)
    for kind, (near, moves, reachable) in enumerate(_nearer(game, state)):
        mine = moves.index_select(1, seats)  # [B, L]
        begin = layout.ways + STAY * kind
        rows[..., begin : begin + STAY] = torch.stack([(mine >> a) & 1 for a in range(STAY)], 2).to(torch.uint8)
        column = layout.distances + (place * layout.kinds + kind) * (FAR + 1)  # [n]
        rows.scatter_(2, near.clamp_max(FAR).long()[:, order] + column, reachable[:, order].to(torch.uint8))


def ways_size(game: GameConfig) -> int:
    """Numbers of `ways` for a seat: for each kind of prey four moves, and how far every player is from it."""
    return len(game.prey_kinds) * (STAY + game.players)


def ways(game: Game, state: State, seats: Tensor | None = None) -> Tensor:
    """The shortest ways as numbers, [B, L, W] float32 of `seats` [L] (None: all): for each kind of prey which moves
    come nearer to the nearest one, and the closeness 1 (there) to 0 (far, gone, or none) of every player, itself first.
    """
    looking = torch.arange(game.players, device=state.cell.device) if seats is None else seats
    order, parts = game.ego[looking], []  # [L, n]
    for near, moves, reachable in _nearer(game, state):
        mine = moves[:, looking]
        close = (1 - near.clamp_max(FAR) / FAR) * reachable
        parts += [torch.stack([(mine >> a) & 1 for a in range(STAY)], 2).float(), close[:, order]]
    return torch.cat(parts, 2)


class Symmetries:
    """The symmetries of a game's grid as permutations of rows and actions."""

    def __init__(self, layout: RowLayout, device: torch.device | str) -> None:
        places = torch.arange(layout.size)
        planes = places[layout.start : layout.ways].view(layout.height, layout.width, layout.channels)
        rows, actions = [], []
        for symmetry in symmetries(layout.height, layout.width):
            table = symmetry.action_table()[: layout.actions]
            source = torch.empty_like(table)
            source[table] = torch.arange(layout.actions)  # new action a was source[a]
            parts = [source, places[layout.actions : layout.start], symmetry.planes(planes).flatten()]
            if layout.paths:
                parts += [layout.ways + STAY * kind + source[:STAY] for kind in range(layout.kinds)]
                parts.append(places[layout.distances :])
            rows.append(torch.cat(parts))
            actions.append(source)
        self.rows = torch.stack(rows).to(device)  # [8, W] column w of a turned row is column rows[w] of the row
        self.by_action = torch.stack(actions).to(device)  # [8, A] the same for distributions over actions
        self.renamed = self.by_action.argsort(1)  # [8, A] the new number of every action

    def __len__(self) -> int:
        return self.rows.shape[0]
