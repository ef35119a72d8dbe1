"""The goals that co-players may have: stag and hare, the prototypes of codes, or none.

Letters: K goals, V goal width, D code width (V = D for codes).
"""

from __future__ import annotations

import torch
from torch import Tensor

from marlab.hunt.others.vae import Code


class Goals:
    """Candidates for what a player is after, and what a capture says about them."""

    def __init__(
        self, candidates: Tensor, evidence: Tensor, common: Tensor | None = None, spread: Tensor | None = None
    ) -> None:
        """candidates: [K, V]; evidence: [3, K] probability of each outcome (none, stag, hare) under a goal.

        common: [2, K] how common each goal is among players who are after the stag, and after hares. By default that is
        read from captures, which tell nothing about those who wait at the stag in vain. spread: [K, V] variance of the
        codes that a prototype stands for, where goals are codes.
        """
        if candidates.dim() != 2 or evidence.shape != (3, len(candidates)):
            raise ValueError(f"evidence {tuple(evidence.shape)} does not fit goals {tuple(candidates.shape)}")
        self.candidates, self.evidence = candidates.float(), evidence
        known = evidence[1:] if common is None else common
        self.common = known / known.sum()
        self.spread = torch.zeros_like(self.candidates) if spread is None else spread.float()

    @staticmethod
    def hunt() -> Goals:
        return Goals(torch.eye(2), torch.tensor([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]))

    @staticmethod
    def none() -> Goals:
        return Goals(torch.zeros(1, 0), torch.ones(3, 1))

    @property
    def count(self) -> int:
        """K, the number of goals."""
        return self.candidates.shape[0]

    @property
    def stag(self) -> Tensor:
        """[K] how much of each goal is about the stag: the share of stag hunters among those who have it."""
        return self.common[0] / self.common.sum(0)

    def to(self, device: torch.device | str) -> Goals:
        return Goals(*(x.to(device) for x in (self.candidates, self.evidence, self.common, self.spread)))


def meant_by(code: Code, candidates: Tensor, spread: Tensor) -> Tensor:
    """[*S, K, D] what each of K prototypes [K, D] means for players whose histories say `code` [*S, D].

    Both are normal distributions, and this is the mean of their product: the prototype where the history says little,
    the history's code where it is sure.
    """
    certain, vague = code.log_var.exp().unsqueeze(-2), spread
    own = vague / (vague + certain)  # the weight of the history's code
    return own * code.mean.unsqueeze(-2) + (1 - own) * candidates
