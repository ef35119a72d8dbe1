"""Which action a simulation tries next: PUCT, and Gumbel sampling with sequential halving.

PUCT tries the action with the highest Q + c P sqrt(N) / (1 + n), with Q brought to 0..1. The Gumbel rules (Danihelka
and others, "Policy improvement by planning with Gumbel", 2022) take the best few actions of prior and noise at the
root and halve them again and again; below the root they visit actions in proportion to an improved policy.

All functions see rows: nodes whose statistics are the columns of a table. Actions come first in every shape, because
reductions over a leading axis are several times faster on a CPU than those over a short last one.
Letters: A actions, R rows, B roots, S simulations.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from marlab.lab.search.config import SearchConfig

SMALLEST_RANGE = 1e-8
"""Values that lie closer together than this count as equal."""
LOWEST_SCORE = -1e9
"""A considered action of the root scores at least this, so that it comes before all others."""


class Rows(NamedTuple):
    """The statistics of some nodes, cut from a table [3 A + 1, R]."""

    prior: Tensor
    """[A, R] with PUCT probabilities, with Gumbel log-probabilities; -inf for illegal actions in both."""
    visits: Tensor
    """[A, R] how often each action was tried."""
    returns: Tensor
    """[A + 1, R] sum of the returns that followed each action, and last the value the node was given when made."""

    @staticmethod
    def of(table: Tensor) -> Rows:
        actions = table.shape[0] // 3
        return Rows(table[:actions], table[actions : 2 * actions], table[2 * actions :])

    @property
    def raw_value(self) -> Tensor:
        """[R] the value a node was given when it was made."""
        return self.returns[-1]

    def value(self, visits: Tensor | None = None) -> Tensor:
        """[R] mean of a node's own value and all returns through it; `visits` [R] may give the sum over actions."""
        return self.returns.sum(0) / ((self.visits.sum(0) if visits is None else visits) + 1)

    def q(self, untried: Tensor, other: Tensor) -> Tensor:
        """[A, R] mean returns, with `other` [R] for actions never tried; `untried` [A, R] is 1 for those, else 0."""
        means = self.returns[:-1] / (self.visits + untried)  # 0 where never tried, so that the sum is exact
        return torch.addcmul(means, untried, other)

    def untried(self) -> Tensor:
        """[A, R] 1 for actions never tried, else 0."""
        return (1 - self.visits).clamp_min_(0)


# --- PUCT ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def prior_weights(c1: float, c2: float, simulations: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """[S + 1] weight of the prior at a node whose actions were tried so often: (c1 + log(...)) sqrt(N)."""
    visits = torch.arange(1, simulations + 2, dtype=torch.float64)  # the node's own visit counts as well
    return ((c1 + ((visits + c2 + 1) / c2).log()) * visits.sqrt()).to(device, dtype)


def puct_scores(rows: Rows, config: SearchConfig, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    """[A, R] scores; `low` and `high` [R] are the range of each row's tree, for `normalise` tree."""
    visits = rows.visits.sum(0)  # [R]
    value = rows.value(visits)
    untried = rows.untried()
    q = rows.returns[:-1] / (rows.visits + 1) if config.legacy_q else rows.q(untried, value)
    if config.normalise == "siblings":
        low, high = torch.minimum(q.amin(0), value), torch.maximum(q.amax(0), value)
    if config.normalise == "range":
        q = q.sub_(config.value_range[0]).div_(config.value_range[1] - config.value_range[0])
    elif config.normalise != "none":
        assert low is not None and high is not None
        q = q.sub_(low).div_((high - low).clamp_min_(SMALLEST_RANGE))
    if config.unvisited == "lowest" and not config.legacy_q:
        q = q * (1 - untried)
    table = prior_weights(config.c1, config.c2, config.simulations, q.dtype, q.device)
    weight = table.index_select(0, visits.to(torch.int32))
    return (rows.prior * weight).div_(rows.visits + 1).add_(q)


def dirichlet_prior(prior: Tensor, config: SearchConfig, generator: torch.Generator | None) -> Tensor:
    """Priors [A, B] with their share of noise; illegal actions stay at -inf.

    A gamma variate of a small shape underflows; its logarithm, built from one of shape + 1, does not.
    """
    shape = torch.full_like(prior, config.dirichlet_alpha + 1)
    uniform = torch.rand(prior.shape, generator=generator, dtype=prior.dtype, device=prior.device)
    gamma = torch._standard_gamma(shape, generator=generator)
    log_gamma = gamma.log() + uniform.clamp_min(torch.finfo(prior.dtype).tiny).log() / config.dirichlet_alpha
    illegal = prior.isneginf()
    noise = log_gamma.masked_fill(illegal, -torch.inf).softmax(0)
    return ((1 - config.dirichlet_share) * prior + config.dirichlet_share * noise).masked_fill(illegal, -torch.inf)


# --- Gumbel -------------------------------------------------------------------------------------------------------


def completed_q(rows: Rows, config: SearchConfig) -> Tensor:
    """[A, R] values scaled to the size of logits; actions never tried get what prior and tried actions suggest."""
    visits = rows.visits.sum(0)
    untried = rows.untried()
    q = rows.returns[:-1] / (rows.visits + untried)
    tiny = torch.finfo(q.dtype).tiny
    weight = rows.prior.exp().clamp_min_(tiny).mul_(1 - untried)
    tried_mean = (weight * q).sum(0) / weight.sum(0).clamp_min_(tiny)
    mixed = torch.addcmul(rows.raw_value, visits, tried_mean) / (visits + 1)
    q = q.addcmul_(untried, mixed)
    low, high = q.amin(0), q.amax(0)
    scale = (rows.visits.amax(0) + config.visit_offset) * config.value_scale
    return q.sub_(low).mul_(scale / (high - low).clamp_min_(SMALLEST_RANGE))


def gumbel_scores(rows: Rows, config: SearchConfig) -> Tensor:
    """[A, R] scores below the root: visits follow the improved policy as closely as whole numbers allow.

    An illegal action scores 0 and is never taken: the scores of the others sum to more than 0.
    """
    improved = (rows.prior + completed_q(rows, config)).softmax(0)
    return improved - rows.visits / (rows.visits.sum(0) + 1)


def gumbel_root_scores(rows: Rows, noise: Tensor, considered: Tensor, config: SearchConfig) -> Tensor:
    """[A, B] scores at the root of the actions whose visits equal `considered` [B]; -inf for the others."""
    logits = rows.prior - rows.prior.amax(0)
    scores = (noise + logits + completed_q(rows, config)).clamp_min_(LOWEST_SCORE)
    return scores.masked_fill_((rows.visits != considered) | rows.prior.isneginf(), -torch.inf)


def gumbel_noise(like: Tensor, config: SearchConfig, generator: torch.Generator | None) -> Tensor:
    """Scaled Gumbel noise of the shape of `like`."""
    waiting = torch.empty_like(like).exponential_(generator=generator)
    return -config.gumbel_scale * waiting.clamp_min_(torch.finfo(like.dtype).tiny).log_()


def halving_visits(actions: int, simulations: int) -> list[int]:
    """Sequential halving as a list: simulation s tries the best action that has been visited this often.

    The budget is shared evenly among the rounds; every round visits its actions equally and keeps the better half.
    """
    if actions <= 1:
        return list(range(simulations))
    rounds = math.ceil(math.log2(actions))
    order: list[int] = []
    left, seen = actions, 0
    while len(order) < simulations:
        for _ in range(max(1, simulations // (rounds * left))):
            order += [seen] * left
            seen += 1
        left = max(2, left // 2)
    return order[:simulations]


@lru_cache(maxsize=32)
def _halving_orders(most: int, simulations: int, device: torch.device) -> Tensor:
    """[S, most + 1] the lists for 0 to `most` actions; kept, so that nothing is copied to the device in a search."""
    orders = [halving_visits(actions, simulations) for actions in range(most + 1)]
    return torch.tensor(orders, device=device).t().contiguous()


def halving_table(legal: Tensor, config: SearchConfig) -> Tensor:
    """[S, B] visits of the actions considered in each simulation, by the number of legal ones in `legal` [A, B]."""
    most = min(config.considered, legal.shape[0])
    return _halving_orders(most, config.simulations, legal.device).index_select(1, legal.sum(0).clamp_max(most))
