"""Networks of the planning players: prior and value of many copies side by side.

Letters: P copies, N rows of a copy, W row width, A actions, K goals, X hidden width, S' = n - 1 others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.rows import row_layout
from marlab.hunt.others.copies import BatchedLinear, ObservationLayer


class PlayerNets(nn.Module):
    """Prior and value of P players, given what the others are after.

    A value that does not know the others' goals waits at the stag for players who never come. So both heads are told
    how probable each of K goals is for each of the S' others: a belief at the root, a drawn goal inside a tree.
    """

    def __init__(
        self, game: GameConfig, goals: int, hidden: int, generators: Sequence[torch.Generator], paths: bool = False
    ) -> None:
        super().__init__()
        self.copies = len(generators)
        width = (game.players - 1) * goals if goals > 1 else 0  # a single goal tells nothing
        weights = [torch.empty(width, hidden).normal_(0.0, 0.5, generator=g) for g in generators]
        self.wish = nn.Parameter(torch.stack(weights)) if width else None  # [P, S' K, X]
        self.sight = ObservationLayer(row_layout(game, paths), hidden, generators)
        self.middle = BatchedLinear(hidden, hidden, generators, math.sqrt(2.0))
        self.actor = BatchedLinear(hidden, game.actions, generators, 0.01)
        self.critic = BatchedLinear(hidden, 1, generators, 0.01)

    def goal_input(self, goals: Tensor) -> Tensor | None:
        """[P, N, X] what goal probabilities [P, N, S', K] add; constant in a tree, so made once."""
        return None if self.wish is None else torch.bmm(goals.flatten(2), self.wish)

    def forward(self, rows: Tensor, time: Tensor, goal_input: Tensor | None) -> tuple[Tensor, Tensor]:
        """Logits [P, N, A] (without a mask) and values [P, N] in scaled reward units."""
        x = self.middle(torch.relu(self.sight(rows, time)))
        x = torch.relu(x if goal_input is None else x + goal_input)
        return self.actor(x), self.critic(x).squeeze(-1)
