"""What a player may be up to: a goal that it keeps, or one that depends on what somebody else does.

A follower takes hares until another player stands on a stag, then it comes. Until that happens it does what a hare
catcher does, so only standing there can tell the two apart, and only memory of earlier episodes makes that worthwhile.
No network is needed beyond those of the goals: in each situation a follower has one goal or the other.

Letters: K goals, F followers (one for each goal that is about hares), G = K + F hypotheses, V goal width.
"""

from __future__ import annotations

import torch
from torch import Tensor

from marlab.hunt.others.codes import Goals
from marlab.hunt.players.rollout import STAG
from marlab.lab.errors import UserError


class Hypotheses:
    """K goals that players keep, and followers."""

    def __init__(self, goals: Goals, followers: float = 0.0) -> None:
        """followers: how probable it is of a stranger who takes hares that it follows; 0: nobody is thought to."""
        check_followers(followers)
        stag = goals.stag
        count, device = goals.count, stag.device
        hares = ((stag < 0.5) & bool((stag > 0.5).any()) & (followers > 0)).nonzero().squeeze(1)  # [F]
        usual = int(goals.common[0].argmax())  # the goal that most stag hunters have
        every = torch.arange(count, device=device)
        self.alone = torch.cat([every, hares])  # [G] goal while no other player stands on a stag
        self.joined = torch.cat([every, torch.full_like(hares, usual)])  # [G] goal once one does
        self.follows = torch.arange(len(self.alone), device=device) >= count  # [G]
        even = torch.full((count,), 1.0 / count, device=device)
        kept = even.index_fill(0, hares, (1 - followers) / count)
        self.prior = torch.cat([kept, followers * even[hares]])  # [G]: goals are as probable as without followers
        self.stag = stag[self.alone]  # [G]
        self.evidence = goals.evidence[:, self.alone].clone()  # [3, G] a follower captures one or the other
        self.evidence[STAG] = goals.evidence[STAG, self.joined]
        self._candidates = goals.candidates

    @property
    def count(self) -> int:
        """G."""
        return len(self.alone)

    def now(self, by_goal: Tensor, held: Tensor) -> Tensor:
        """[*S, G] of each hypothesis from [*S, K] of each goal, for players `held` [*S] (bool) of whom another stands
        on a stag."""
        return torch.where(held.unsqueeze(-1), by_goal[..., self.joined], by_goal[..., self.alone])

    def meanings(self, meant: Tensor) -> tuple[Tensor, Tensor]:
        """[*S, G, V] twice, while no other player stands on a stag and once one does, from what goals mean [*S, K, V].

        A follower's history says nothing about how it will hunt the stag, so that is the bare goal.
        """
        alone = meant[..., self.alone, :]
        return alone, torch.where(self.follows.unsqueeze(1), self._candidates[self.joined], alone)

    def told(self, belief: Tensor) -> Tensor:
        """[*S, K] what a planner's own networks are told of beliefs [*S, G]: a follower is a partner to be won."""
        return belief.new_zeros(*belief.shape[:-1], int(self.alone.max()) + 1).index_add(-1, self.joined, belief)


def check_followers(followers: float) -> None:
    if not 0 <= followers < 1:
        raise UserError(f"followers is {followers:g}, expected 0 or more and below 1.")


def others_at(standing: Tensor) -> Tensor:
    """[*S, n] bool: another player stands on a stag, from who does [*S, n]."""
    return standing.sum(-1, keepdim=True) > standing
