"""The Markov snowdrift game: drifts block the road, clearing one pays everybody and costs only who clears it.

Same grid, moves, states and interface as the stag hunt; a drift is a prey that one player can take, and nobody
ever leaves. REMOVE is action 5, so there are six actions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from marlab.hunt.game.fold import count_of, sum_of
from marlab.hunt.game.rules import Game

REMOVE = 5
ACTION_NAMES = ("up", "down", "left", "right", "stay", "remove")


class Snowdrift(Game):
    """Every removed drift pays `drift_reward` to all; its removers share `drift_cost`."""

    def _resolve(self, hunting: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        count = count_of(hunting, 1)  # [B, m]
        removed = count > 0
        cost = self.config.drift_cost / count.clamp_min(1)  # [B, m] for each remover
        gain = self.config.drift_reward * count_of(removed, 1).unsqueeze(1)  # [B, 1]
        reward = gain - sum_of(hunting * cost.unsqueeze(1), 2)
        helpers = sum_of(hunting * count.unsqueeze(1), 2)
        return reward, helpers, removed

    def _leaves(self, hunters: Tensor) -> Tensor:
        return torch.zeros_like(hunters, dtype=torch.bool)
