"""Networks of planning agents: many small ones side by side.

Planning asks for millions of evaluations, so these are two-layer perceptrons, and all copies (of every seed, and of
every seat where seats do not share) are evaluated by one batched product. They read the rows of
`game.rows` and the time.

Letters: P copies, N rows of a copy, W row width, A actions, K goals, V goal width, X hidden width, n players,
S' = n - 1 slots (slot k is the player who sits k + 1 places after the observer).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.rows import RowLayout, row_layout
from marlab.lab.ppo.choices import apply_mask


class Layer(nn.Module):
    """P linear layers side by side: [P, N, n_in] -> [P, N, n_out]."""

    def __init__(self, n_in: int, n_out: int, generators: Sequence[torch.Generator], gain: float) -> None:
        super().__init__()
        scale = gain / math.sqrt(n_in)
        weights = [torch.empty(n_in, n_out).normal_(0.0, scale, generator=g) for g in generators]
        self.weight = nn.Parameter(torch.stack(weights))
        self.bias = nn.Parameter(torch.zeros(len(weights), 1, n_out))

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] == 1:
            return torch.addmm(self.bias[0], x[0], self.weight[0]).unsqueeze(0)
        return torch.baddbmm(self.bias, x, self.weight)


class Sight(nn.Module):
    """The first layer: rows [P, N, W] and times [P, N] (t / T_max) -> [P, N, X], before its ReLU."""

    def __init__(self, layout: RowLayout, hidden: int, generators: Sequence[torch.Generator]) -> None:
        super().__init__()
        self.rows = Layer(layout.size, hidden, generators, math.sqrt(layout.size / layout.marks))  # rows are sparse
        self.time = nn.Parameter(torch.zeros(len(generators), 1, hidden))

    def forward(self, rows: Tensor, time: Tensor) -> Tensor:
        return self.rows(rows.to(self.time.dtype)).addcmul(time.unsqueeze(-1), self.time)


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
        self.sight = Sight(row_layout(game, paths), hidden, generators)
        self.middle = Layer(hidden, hidden, generators, math.sqrt(2.0))
        self.actor = Layer(hidden, game.actions, generators, 0.01)
        self.critic = Layer(hidden, 1, generators, 0.01)

    def goal_input(self, goals: Tensor) -> Tensor | None:
        """[P, N, X] what goal probabilities [P, N, S', K] add; constant in a tree, so made once."""
        return None if self.wish is None else torch.bmm(goals.flatten(2), self.wish)

    def forward(self, rows: Tensor, time: Tensor, goal_input: Tensor | None) -> tuple[Tensor, Tensor]:
        """Logits [P, N, A] (without a mask) and values [P, N] in scaled reward units."""
        x = self.middle(torch.relu(self.sight(rows, time)))
        x = torch.relu(x if goal_input is None else x + goal_input)
        return self.actor(x), self.critic(x).squeeze(-1)


class OtherNets(nn.Module):
    """Models of others: P observers, each about its n - 1 others, given one of K goals.

    `goals` [K, V] are the candidates: one-hot stag and hare, the prototypes of a codebook, or one empty goal.
    """

    goals: Tensor

    def __init__(
        self, game: GameConfig, goals: Tensor, hidden: int, generators: Sequence[torch.Generator], paths: bool = False
    ) -> None:
        super().__init__()
        self.copies, self.slots = len(generators), game.players - 1
        self.sight = Sight(row_layout(game, paths), hidden, generators)
        self.place = nn.Parameter(torch.zeros(self.copies, 1, self.slots, hidden))
        self.middle = Layer(hidden, hidden, generators, math.sqrt(2.0))
        width = goals.shape[1]
        weights = [torch.empty(width, hidden).normal_(0.0, 1.0, generator=g) for g in generators]
        self.wish = nn.Parameter(torch.stack(weights))  # [P, V, X]
        self.actor = Layer(hidden, game.actions, generators, 0.01)
        self.register_buffer("goals", goals.float())

    @property
    def count(self) -> int:
        """K, the number of goals."""
        return self.goals.shape[0]

    def wishes(self) -> Tensor:
        """[P, K, X] what each goal adds to the second layer."""
        return torch.matmul(self.goals, self.wish)

    def goal_input(self, goal: Tensor) -> Tensor:
        """[P, N, S', X] what given goals [P, N, S'] (numbers below K) add; constant in a tree, so made once."""
        copy = torch.arange(self.copies, device=goal.device).view(-1, 1, 1)
        return self.wishes()[copy, goal]

    def state(self, rows: Tensor, time: Tensor) -> Tensor:
        """[P, N, S', X] from others' own views [P, N, S', W] and times [P, N] (or [P, N, S'] of separate steps)."""
        lead = rows.shape[:3]
        wide = time if time.dim() == 3 else time.unsqueeze(2).expand(lead)
        seen = self.sight(rows.flatten(1, 2), wide.flatten(1, 2)).unflatten(1, lead[1:])
        return self.middle(torch.relu(seen + self.place).flatten(1, 2)).unflatten(1, lead[1:])

    def given(self, rows: Tensor, time: Tensor, goal_input: Tensor) -> Tensor:
        """Logits [P, N, S', A] under the goals that `goal_input` [P, N, S', X] was made of."""
        x = torch.relu(self.state(rows, time) + goal_input)
        return self.actor(x.flatten(1, 2)).unflatten(1, x.shape[1:3])

    def forward(self, rows: Tensor, time: Tensor) -> Tensor:
        """Logits [P, N, S', K, A] under every goal."""
        wishes = self.wishes()[:, None, None]  # [P, 1, 1, K, X]
        x = torch.relu(self.state(rows, time).unsqueeze(3) + wishes)
        return self.actor(x.flatten(1, 3)).unflatten(1, x.shape[1:4])


def masked_mixture(logits: Tensor, legal: Tensor, weight: Tensor) -> Tensor:
    """Log-probabilities [*S, A] of the mixture of predictions [*S, K, A] with goal probabilities `weight` [*S, K]."""
    log_p = apply_mask(logits, legal.unsqueeze(-2)).log_softmax(-1)
    return (log_p + weight.clamp_min(1e-30).log().unsqueeze(-1)).logsumexp(-2)


def copy_generators(seeds: Sequence[int], per_seed: int, purpose: str) -> list[torch.Generator]:
    """One generator per copy, a seed's own: what other seeds run beside it does not change its start."""
    from marlab.lab.runs.rng import Rngs

    return [Rngs(seed).torch(f"{purpose}/{copy}", "cpu") for seed in seeds for copy in range(per_seed)]
