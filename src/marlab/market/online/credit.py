"""What each choice brought: rewards as potentials, and advantages over a thread's own choices.

Letters: D days of a rollout, T = 20 D rounds, N seats of the learner, K partners of each. An agent is a seat with one
of its partners; it acts in the rounds in which its thread runs and has a choice.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from marlab.market.vector.rounds import ROUNDS

SCALE = 10.0
"""Rewards are in tenths of the opening balance: values near 1 suit a critic."""


class Rewards(NamedTuple):
    """What was earned, in shares of the opening balance."""

    own: Tensor  # [T, N, K] a signed contract's worth, in the round of the choice that led to it
    evening: Tensor  # [D, N] everything else of a day: settlement, purchases, changes of what contracts are worth
    ended: Tensor  # [D, N], bool: the world was over after this day


def signing_round(half: Tensor, calls: Tensor) -> Tensor:
    """The round of the own choice that led to a contract signed in a half-round; `calls`: whether one moves first."""
    mine = (half % 2 == 0) == calls
    return torch.div(torch.where(mine, half, half - 1).clamp(min=0), 2, rounding_mode="floor")


def team_rewards(rewards: Rewards, share: float) -> Tensor:
    """[T, N, K] what counts for each agent: its own deals, and a share of what the rest of its factory brings."""
    own = rewards.own
    total = own + share * (own.sum(-1, keepdim=True) - own)
    total[ROUNDS - 1 :: ROUNDS] += share * rewards.evening[..., None]
    return SCALE * total


def advantages(
    reward: Tensor, value: Tensor, acts: Tensor, ended: Tensor, gamma: float, lam: float
) -> tuple[Tensor, Tensor]:
    """Advantage and return [T, N, K] of the choices, from one of an agent's own choices to its next.

    `reward`, `value`, `acts`: [T, N, K]; `ended` [D, N]. Time passes between days only: `gamma` per day. What comes
    after the last choice of an agent in the rollout is not known; the rollout is a day longer than what is learnt from.
    """
    advantage = torch.zeros_like(value)
    earned, next_value, carried = (torch.zeros_like(value[0]) for _ in range(3))
    for t in range(len(reward) - 1, -1, -1):
        if t % ROUNDS == ROUNDS - 1:
            goes_on = gamma * (~ended[t // ROUNDS]).to(value.dtype)[:, None]
            earned, next_value, carried = earned * goes_on, next_value * goes_on, carried * goes_on
        earned = earned + reward[t]
        now = earned + next_value - value[t] + lam * carried
        advantage[t] = now
        earned = torch.where(acts[t], 0.0, earned)
        next_value = torch.where(acts[t], value[t], next_value)
        carried = torch.where(acts[t], now, carried)
    return advantage, advantage + value
