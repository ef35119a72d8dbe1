"""Generalised advantage estimation over rollouts with deaths, time limits and next-step resets.

Letters: T steps, *S any shape of parallel rows (arenas x agents).
"""

from __future__ import annotations

import torch
from torch import Tensor


def advantages(
    reward: Tensor, value: Tensor, terminated: Tensor, truncated: Tensor, gamma: float, lam: float
) -> tuple[Tensor, Tensor]:
    """Advantage and return of every step.

    reward, terminated, truncated: [T, *S]; value: [T + 1, *S], where value[t + 1] is the value of the observation
    *after* step t. Worlds reset one step late, so after the last step of an episode that is its true final
    observation: a truncated step bootstraps from it, a terminated one does not, and neither lets the advantage
    of the next episode through.
    """
    alive = 1.0 - terminated.to(value.dtype)  # [T, *S] the future counts at all
    same_episode = alive * (1.0 - truncated.to(value.dtype))  # [T, *S] the next step belongs to this episode
    delta = reward + gamma * alive * value[1:] - value[:-1]
    carry = gamma * lam * same_episode
    advantage = torch.empty_like(delta)
    last = torch.zeros_like(delta[0])
    for t in range(delta.shape[0] - 1, -1, -1):
        last = torch.addcmul(delta[t], carry[t], last)
        advantage[t] = last
    return advantage, advantage + value[:-1]
