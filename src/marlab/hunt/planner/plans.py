"""What a plan is made of: who is to decide, what the trees found, and the distribution to act by.

Letters: S seeds, B games, n players, A actions, G = S n groups, M decisions of a group, N trees of a decision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from marlab.lab.ppo.choices import apply_mask
from marlab.lab.search.search import SearchResult

LINE = 6
"""Steps of the most visited line of play that a plan shows."""


class SeatDecisions(NamedTuple):
    """Who is to decide, in groups of one size."""

    game: Tensor  # [G, M] int64
    seat: Tensor  # [G, M] int64
    real: Tensor  # [G, M] bool: the others only fill up their group


class JointPlan(NamedTuple):
    """What was planned, per game and seat; zeros where nobody was to decide. Values in reward units of the game."""

    policy: Tensor  # [B, n, A] the distribution to act by
    prior: Tensor  # [B, n, A] the network's own
    q: Tensor  # [B, n, A] mean over trees
    visits: Tensor  # [B, n, A] summed over trees
    value: Tensor  # [B, n] of the root, by search
    guess: Tensor  # [B, n] of the root, by the network
    line: Tensor  # [B, n, LINE] the likeliest action, then the most visited ones in the first tree; -1 after its end
    metrics: dict[str, Tensor]  # means over decisions


class TreeResults(NamedTuple):
    """Results of all trees of all decisions."""

    q: Tensor  # [G M, N, A]
    visits: Tensor  # [G M, N, A]
    value: Tensor  # [G M, N]
    low: Tensor  # [G M] least value in the trees
    high: Tensor  # [G M] greatest value in the trees
    line: Callable[[Tensor], Tensor]  # the plan [G M, LINE] that begins with given actions [G M]
    metrics: dict[str, Tensor]  # [G M] each


def decisions(want: Tensor, seeds: int, sizes: int | None = None) -> SeatDecisions | None:
    """Group the seats that `want` [B, n] a decision; None if nobody does. Reads one number back to the host.

    sizes: fill groups up to one of so many sizes, for searches that are recorded once per size.
    """
    games, players = want.shape[0] // seeds, want.shape[1]
    wanted = want.view(seeds, games, players).transpose(1, 2).reshape(seeds * players, games)  # [G, E]
    size = int(wanted.sum(1).max())
    if size == 0:
        return None
    if sizes is not None:
        unit = -(-games // sizes)
        size = min(games, -(-size // unit) * unit)
    real, order = wanted.to(torch.uint8).sort(dim=1, descending=True, stable=True)
    group = torch.arange(seeds * players, device=want.device).unsqueeze(1)
    seat = (group % players).expand(-1, size)
    return SeatDecisions(order[:, :size] + group // players * games, seat, real[:, :size].bool())


def summarise(result: SearchResult, trees: int) -> TreeResults:
    """The trees of each decision together."""

    def by_decision(x: Tensor) -> Tensor:
        return x.unflatten(0, (-1, trees))

    def line(first: Tensor) -> Tensor:
        return result.tree.line(LINE, torch.arange(len(first), device=first.device) * trees, first)

    return TreeResults(
        by_decision(result.q),
        by_decision(result.visits),
        by_decision(result.value),
        by_decision(result.low).amin(1),
        by_decision(result.high).amax(1),
        line,
        {
            "depth": by_decision(result.depth).mean(1),
            "depth_max": by_decision(result.deepest).amax(1).to(result.value.dtype),
            "terminal_share": by_decision(result.ended).mean(1),
        },
    )


def scatter_to_groups(results: TreeResults, real: Tensor) -> TreeResults:
    """Results of the `real` decisions [GM] in the places of all; zeros, and lines of nothing, elsewhere."""

    def spread(x: Tensor) -> Tensor:
        out = x.new_zeros(len(real), *x.shape[1:])
        out[real] = x
        return out

    def line(first: Tensor) -> Tensor:
        out = first.new_full((len(real), LINE), -1)
        out[real] = results.line(first[real])
        return out

    q, visits, value, low, high = (spread(x) for x in results[:5])
    return TreeResults(q, visits, value, low, high, line, {name: spread(x) for name, x in results.metrics.items()})


def normalised(q: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Q [D, A] on a scale from 0 (the least value in the decision's trees) to 1; all 0 where they do not differ."""
    span = (high - low).unsqueeze(1)
    return torch.where(span > 1e-6, (q - low.unsqueeze(1)) / span.clamp_min(1e-6), 0.0)


def boltzmann(q: Tensor, legal: Tensor, beta: float, logits: Tensor | None = None) -> Tensor:
    """[D, A] softmax(beta Q) over legal actions, on top of prior `logits` where they are given."""
    scores = beta * q if logits is None else beta * q + logits
    return apply_mask(scores, legal).softmax(-1)


def decision_metrics(
    results: TreeResults, q: Tensor, policy: Tensor, prior: Tensor, legal: Tensor, unit: float
) -> dict[str, Tensor]:
    """[D] planner sanity figures of every decision; values times `unit`.

    improvement is the planned policy's Q minus the prior's: planning must not make things worse by its own measure.
    """
    off = ~legal
    spread = q.masked_fill(off, -torch.inf).amax(1) - q.masked_fill(off, torch.inf).amin(1)
    log_policy = policy.clamp_min(1e-30).log()
    apart = results.q.std(1, correction=0).masked_fill(off, 0.0).sum(1) / legal.sum(1)
    improvement = ((policy - prior) * q.masked_fill(off, 0.0)).sum(1)
    return {
        "root_value": results.value.mean(1) * unit,
        "q_spread": spread * unit,
        "scaled_spread": spread / (results.high - results.low).clamp_min(1e-6),
        "entropy": -(policy * log_policy).sum(1),
        "kl_to_prior": (policy * (log_policy - prior.clamp_min(1e-30).log())).sum(1),
        "improvement": improvement * unit,
        "improved_share": (improvement >= -1e-6).to(q.dtype),
        "disagreement": apart * unit,
        **results.metrics,
    }
