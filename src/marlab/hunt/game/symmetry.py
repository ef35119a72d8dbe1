"""The grid's symmetries: a turned or mirrored game is the same game, with the moves renamed.

Rule-based players know no compass, so every symmetry of a row is as true a row as the original.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from marlab.hunt.game.maps import MOVES
from marlab.hunt.game.rules import ABSENT, STAY


@dataclass(frozen=True)
class Symmetry:
    """`quarter_turns` counter-clockwise, then mirrored left to right if `mirrored`."""

    quarter_turns: int
    mirrored: bool

    def planes(self, planes: Tensor) -> Tensor:
        """Planes [*S, H, W, C] as the symmetry shows them."""
        turned = torch.rot90(planes, self.quarter_turns, (-3, -2))
        return turned.flip(-2) if self.mirrored else turned

    @lru_cache(maxsize=16)  # noqa: B019 (eight small tables, asked for at every step)
    def action_table(self) -> Tensor:
        """[8] the new number of every action (ABSENT included)."""
        table = torch.arange(ABSENT + 1)
        for action, (down, right) in enumerate(MOVES):
            mark = torch.zeros(3, 3, 1)
            mark[1 + down, 1 + right] = 1
            row, col = divmod(int(self.planes(mark).flatten().argmax()), 3)
            table[action] = MOVES.index((row - 1, col - 1))
        return table

    def mask(self, mask: Tensor) -> Tensor:
        """Action masks [*S, A] with the moves renamed."""
        moves = self.action_table()[:STAY].to(mask.device)
        renamed = mask.clone()
        renamed[..., moves] = mask[..., :STAY]
        return renamed

    def actions(self, actions: Tensor) -> Tensor:
        """Action numbers of any shape with the moves renamed."""
        return self.action_table().to(actions.device)[actions]


def symmetries(height: int, width: int) -> list[Symmetry]:
    """All symmetries of the grid, the identity first: eight of a square, four of a rectangle."""
    turns = range(4) if height == width else (0, 2)
    return [Symmetry(turn, mirrored) for mirrored in (False, True) for turn in turns]
