"""What the world model learns from: transitions of an offline data set, with the targets its heads need.

Letters: R rows, n players, C channels, X = H x W cells, m kinds of prey; players are always in ego-first order.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from marlab.hunt.data.dataset import SPLITS, Dataset, SplitName
from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.maps import MOVES
from marlab.hunt.game.rules import HUNT_HARE, HUNT_STAG
from marlab.lab.errors import UserError

LEAVE = 5
"""Sixth outcome of a player's step, after the four moves and staying: it left the game."""
OUTCOMES = 6
GONE = -1
"""Outcome of a player who was not there before the step either."""


class Transitions(NamedTuple):
    """Rows of the world model."""

    obs: Tensor  # [R, H, W, C] uint8
    joint: Tensor  # [R, n] int64, executed actions, ABSENT = 7
    t: Tensor  # [R] int64
    reward: Tensor  # [R] float32, of the row's player
    next_obs: Tensor  # [R, H, W, C] uint8
    done: Tensor  # [R, 2] bool: the row's player is done, the episode is over
    outcome: Tensor  # [R, n] int64: move, stay, LEAVE, or GONE
    reward_class: Tensor  # [R] int64, see `reward_values`
    follow: Tensor  # [R] int64: row of the same player one step later, -1 after its last

    def select(self, index: Tensor) -> Transitions:
        """Some rows; `follow` keeps the numbers it had, so only step through the whole set."""
        return Transitions(*(field[index] for field in self))

    def to(self, device: torch.device) -> Transitions:
        return Transitions(*(field.to(device) for field in self))

    @property
    def size(self) -> int:
        return self.t.shape[0]


def transitions(data: Dataset, split: SplitName, rows: int = 0) -> Transitions:
    """The transitions of one split; `rows` > 0 takes only the first episodes that have so many rows over all splits."""
    keep = torch.ones(data.rows.size, dtype=torch.bool)
    if rows > 0 and rows < data.rows.size:
        keep = data.rows.episode <= data.rows.episode[rows - 1]  # rows are sorted by episode: the last one stays whole
    if split != "all":
        keep &= (data.split_of == SPLITS.index(split)).repeat_interleave(data.offsets.diff())
    chosen = data.rows.select(keep.nonzero().squeeze(1))
    if chosen.size == 0:
        raise UserError(f"The data set {data.path} has no rows in its {split} split; collect more rows.")
    last = chosen.t == chosen.steps - 1  # everybody takes part from step 0, so a player's steps are its times
    follow = torch.where(last, -1, torch.arange(1, chosen.size + 1))
    return Transitions(
        obs=chosen.obs,
        joint=chosen.joint_a,
        t=chosen.t,
        reward=chosen.r,
        next_obs=chosen.next_obs,
        done=torch.stack([chosen.done_i, chosen.done_all], 1),
        outcome=outcomes(data.game, chosen.obs, chosen.next_obs),
        reward_class=reward_classes(data.game, chosen.a, chosen.r),
        follow=follow,
    )


def cells(planes: Tensor) -> Tensor:
    """[*S, H, W, K] -> [*S, K] int64: the cell with the highest value of every plane."""
    return planes.flatten(-3, -2).argmax(-2)


def outcomes(game: GameConfig, obs: Tensor, next_obs: Tensor) -> Tensor:
    """[R, n]: what each player's step came to, read off the planes before and after it."""
    n = game.players
    before, after = obs[..., :n], next_obs[..., :n]
    there, stays = before.flatten(1, 2).bool().any(1), after.flatten(1, 2).bool().any(1)  # [R, n]
    change = cells(after.int()) - cells(before.int())
    steps = torch.tensor([down * game.width + right for down, right in MOVES] + [0])
    moves = (change.unsqueeze(-1) == steps).int().argmax(-1)  # 0 to 3 moves, STAY = 4
    return torch.where(there, torch.where(stays, moves, LEAVE), GONE)


def reward_values(game: GameConfig) -> Tensor:
    """[2n] what a player is paid: nothing; a hare shared by 1 to n; a stag shared by 2 to n."""
    hares = [game.hare_reward / k for k in range(1, game.players + 1)]
    stags = [game.stag_reward / k for k in range(2, game.players + 1)]
    return torch.tensor([0.0, *hares, *stags])


def reward_classes(game: GameConfig, action: Tensor, reward: Tensor) -> Tensor:
    """[R] the class (index of `reward_values`) of the reward that an executed action brought."""
    n, values = game.players, reward_values(game)
    near = (reward.unsqueeze(1) - values).abs()  # [R, 2n]
    kind = torch.zeros(2 * n, dtype=torch.int64)
    kind[1 : n + 1], kind[n + 1 :] = HUNT_HARE, HUNT_STAG
    wrong_kind = (kind != action.unsqueeze(1)) & (kind != 0)
    return near.masked_fill(wrong_kind, torch.inf).argmin(1)


def legal_from_planes(game: GameConfig, planes: Tensor) -> Tensor:
    """[R, A] bool: the legal actions of the first player as planes [R, H, W, C] of numbers show them, cut at 0.5."""
    n = game.players
    here = cells(planes[..., :1].float()).squeeze(-1)  # [R]
    present = planes[..., 0].flatten(1).amax(1) >= 0.5
    row, col = here // game.width, here % game.width
    moves = []
    blocked = planes[..., n].flatten(1) >= 0.5  # [R, X]
    for down, right in MOVES:
        r, c = row + down, col + right
        inside = (r >= 0) & (r < game.height) & (c >= 0) & (c < game.width)
        target = torch.where(inside, r * game.width + c, here)
        moves.append(inside & ~blocked.gather(1, target.unsqueeze(1)).squeeze(1))
    prey = planes[..., n + 1 :].flatten(1, 2) >= 0.5  # [R, X, m]
    hunts = prey[torch.arange(here.shape[0], device=here.device), here]  # [R, m]
    stay = torch.ones_like(present).unsqueeze(1)
    return torch.cat([torch.stack(moves, 1), stay, hunts], 1) & present.unsqueeze(1)
