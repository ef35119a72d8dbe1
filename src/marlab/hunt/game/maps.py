"""Obstacle maps: how they are drawn, and the tables that make moves and shortest paths one lookup each.

Obstacles never change during an episode, so a game holds a set of M maps and a state names its map. Everything
that depends on obstacles (where a move leads, how far a prey is, which moves come nearer) is tabulated here once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from marlab.hunt.game.config import GameConfig
from marlab.lab.errors import UserError

MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))
"""(row, column) change of UP, DOWN, LEFT, RIGHT."""
SHAPES = {
    "3S": ((0, 0), (0, 1), (0, 2)),
    "3L": ((0, 0), (1, 0), (1, 1)),
    "4S": ((0, 0), (0, 1), (0, 2), (0, 3)),
    "4L": ((0, 0), (1, 0), (2, 0), (2, 1)),
}
MAX_RESTARTS = 1000
UNREACHABLE = 2047
"""Distance between cells that no path joins."""


@dataclass(frozen=True)
class Maps:
    """M obstacle maps with their tables."""

    blocks: Tensor  # [M, C] bool, obstacles
    move: Tensor  # [M, C, 5] int64, cell after UP, DOWN, LEFT, RIGHT, STAY; an impossible move stays
    path: Tensor  # [M, C, C] int16, from, to: 16 * distance + one bit per move that comes nearer
    free: Tensor  # [M] int64, cells without obstacle

    @property
    def count(self) -> int:
        return self.blocks.shape[0]

    def to(self, device: torch.device | str) -> Maps:
        return Maps(self.blocks.to(device), self.move.to(device), self.path.to(device), self.free.to(device))


def make_maps(config: GameConfig, blocks: Tensor) -> Maps:
    """The tables of obstacle maps `blocks` [M, C] (bool)."""
    blocks = blocks.bool()
    move = _move_table(config, blocks)
    return Maps(blocks, move, _path_table(config, blocks, move), (~blocks).sum(1))


def draw_maps(config: GameConfig, count: int, generator: torch.Generator) -> Maps:
    """`count` independent maps by the rules of a reset (one empty map where the game has no obstacles)."""
    if config.max_block_comp == 0:
        return make_maps(config, torch.zeros(1, config.cells, dtype=torch.bool))
    return make_maps(config, draw_blocks(config, count, generator))


def draw_blocks(config: GameConfig, count: int, generator: torch.Generator) -> Tensor:
    """[count, C] bool: obstacles whose free cells are 4-connected and leave room for the prey and a player.

    Every map is drawn anew until it is valid, at most 1,000 times, so maps are independent draws of that rule.
    """
    maps = torch.zeros(count, config.cells, dtype=torch.bool)
    missing = torch.arange(count)
    for _ in range(MAX_RESTARTS + 1):
        blocks = _place_components(config, missing.numel(), generator)
        valid = ((~blocks).sum(1) >= config.prey + 1) & connected(config, blocks)
        maps[missing[valid]] = blocks[valid]
        missing = missing[~valid]
        if missing.numel() == 0:
            return maps
    raise UserError(
        f"No valid layout was maps in {MAX_RESTARTS} restarts for a {config.height}x{config.width} grid with "
        f"max_block_comp {config.max_block_comp} and {config.prey} prey; use fewer components or a larger grid."
    )


def _place_components(config: GameConfig, count: int, generator: torch.Generator) -> Tensor:
    table, sizes = _placements(config.height, config.width)  # [shapes, P, C], [shapes]
    blocks = torch.zeros(count, config.cells, dtype=torch.bool)
    for _ in range(config.max_block_comp):
        shape = torch.randint(len(SHAPES), (count,), generator=generator)
        pick = (torch.rand(count, generator=generator, dtype=torch.float64) * sizes[shape]).long()
        piece = table[shape, pick]  # [count, C]; empty where the shape does not fit the grid at all
        overlaps = (blocks & piece).any(1, keepdim=True)
        blocks |= piece & ~overlaps
    return blocks


@lru_cache(maxsize=8)
def _placements(height: int, width: int) -> tuple[Tensor, Tensor]:
    """Every way to put each shape into the grid ([shapes, P, C] bool) and how many there are ([shapes])."""
    placements: list[list[frozenset[int]]] = []
    for shape in SHAPES.values():
        ways: set[frozenset[int]] = set()
        for turn in range(4):
            cells = [_rotate(cell, turn) for cell in shape]
            for row in range(-3, height + 3):
                for col in range(-3, width + 3):
                    moved = [(row + r, col + c) for r, c in cells]
                    if all(0 <= r < height and 0 <= c < width for r, c in moved):
                        ways.add(frozenset(r * width + c for r, c in moved))
        placements.append(sorted(ways, key=sorted))
    table = torch.zeros(len(placements), max(1, *map(len, placements)), height * width, dtype=torch.bool)
    for s, shape_ways in enumerate(placements):
        for p, cells_taken in enumerate(shape_ways):
            table[s, p, list(cells_taken)] = True
    return table, torch.tensor([len(shape_ways) for shape_ways in placements])


def _rotate(cell: tuple[int, int], quarter_turns: int) -> tuple[int, int]:
    row, col = cell
    for _ in range(quarter_turns):
        row, col = col, -row
    return row, col


def connected(config: GameConfig, blocks: Tensor) -> Tensor:
    """[M] bool: whether all free cells of `blocks` [M, C] can reach each other (False without free cells)."""
    free = ~blocks
    seed = torch.zeros_like(free)
    seed.scatter_(1, free.int().argmax(1, keepdim=True), True)
    reached = _flood(config, (seed & free).unsqueeze(1), free.unsqueeze(1))[0].squeeze(1)
    return free.any(1) & (reached == free).all(1)


def _flood(config: GameConfig, seeds: Tensor, free: Tensor) -> tuple[Tensor, Tensor]:
    """Spread `seeds` [M, K, C] over `free` [M, 1, C]: the reached cells and the step that reached each (int16)."""
    shape = (*seeds.shape[:2], config.height, config.width)
    reached, open_cells = seeds.view(shape), free.view(free.shape[0], 1, config.height, config.width)
    when = torch.full(shape, UNREACHABLE, dtype=torch.int16, device=seeds.device)
    when[reached] = 0
    for step in range(1, config.cells + 1):
        grown = reached.clone()
        grown[..., 1:, :] |= reached[..., :-1, :]
        grown[..., :-1, :] |= reached[..., 1:, :]
        grown[..., :, 1:] |= reached[..., :, :-1]
        grown[..., :, :-1] |= reached[..., :, 1:]
        grown &= open_cells
        fresh = grown & ~reached
        if not bool(fresh.any()):
            break
        when.masked_fill_(fresh, step)
        reached = grown
    return reached.reshape(seeds.shape), when.reshape(seeds.shape)


def _move_table(config: GameConfig, blocks: Tensor) -> Tensor:
    rows, cols = torch.arange(config.cells) // config.width, torch.arange(config.cells) % config.width
    here = torch.arange(config.cells)
    table = here.view(1, -1, 1).repeat(blocks.shape[0], 1, len(MOVES) + 1)  # [M, C, 5]
    for a, (down, right) in enumerate(MOVES):
        row, col = rows + down, cols + right
        inside = (row >= 0) & (row < config.height) & (col >= 0) & (col < config.width)
        target = torch.where(inside, row * config.width + col, here)
        table[:, :, a] = torch.where(blocks[:, target], here, target)
    return table


def _path_table(config: GameConfig, blocks: Tensor, move: Tensor) -> Tensor:
    eye = torch.eye(config.cells, dtype=torch.bool).expand(blocks.shape[0], -1, -1)
    free = ~blocks
    distance = _flood(config, eye & free.unsqueeze(1), free.unsqueeze(1))[1]
    distance = distance.transpose(1, 2).contiguous()  # [M, from, to]
    path = distance * 16
    for a in range(len(MOVES)):
        after = distance.gather(1, move[:, :, a : a + 1].expand(-1, -1, config.cells))  # distance once the move is made
        path += (after < distance).to(torch.int16) << a
    return path
