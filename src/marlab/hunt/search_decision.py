"""From trees to a decision: several trees per decision are joined, and what the planner did is measured.

A decision that draws the goals of the others several times repeats its root, one tree per draw: rows
`decision * T + tree`. Their mean action values give the policy softmax(beta Q). Raw values make that policy nearly
uniform, whatever the planner found (differences of 0.05 to 0.1 for hares), so they are brought to 0..1 first, by the
lowest and highest value of any action tried in the decision's trees.

Letters: D decisions, T trees per decision, A actions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from marlab.hunt.search import Embedding, Evaluation, SearchResult
from marlab.hunt.search_rules import SMALLEST_RANGE
from marlab.lab.choices import apply_mask, sample
from marlab.lab.errors import UserError


@dataclass(frozen=True)
class DecisionConfig:
    """How the trees of a decision become a policy."""

    rule: Literal["values", "visits", "improved"] = "values"
    """softmax(beta Q) of the mean normalised values, shares of visits, or the mean of the trees' improved policies."""
    beta: float = 25.0
    """How sharply normalised values are followed."""
    visit_exponent: float = 1.0
    """Rule visits: (visits / most visits) to this power, made to sum to 1; the original used 1.5."""
    legacy_beta: float | None = None
    """Rule values: follow raw values with this beta instead; the original used 2."""

    def __post_init__(self) -> None:
        if self.rule not in ("values", "visits", "improved"):
            raise UserError(f"decision rule is {self.rule!r}, expected one of values, visits, improved.")
        if not self.beta >= 0:
            raise UserError(f"decision beta is {self.beta:g}, expected 0 or more.")
        if not self.visit_exponent > 0:
            raise UserError(f"decision visit_exponent is {self.visit_exponent:g}, expected a value above 0.")
        if self.legacy_beta is not None and not (self.legacy_beta >= 0 and self.rule == "values"):
            raise UserError("decision legacy_beta needs the rule values and 0 or more (the original used 2).")


@dataclass(frozen=True)
class Decision:
    """One policy per decision, joined from its trees."""

    policy: Tensor
    """[D, A] what to play; 0 for illegal actions."""
    q: Tensor
    """[D, A] mean over the trees of the actions' raw values."""
    scaled: Tensor
    """[D, A] the same, normalised to 0..1 per decision."""
    value: Tensor
    """[D] mean value of the roots."""
    visits: Tensor
    """[D, A] visits of all trees together."""
    legal: Tensor
    """[D, A] bool"""

    def best(self) -> Tensor:
        """[D] the most probable action, as played in evaluation."""
        return apply_mask(self.policy, self.legal).argmax(1)

    def sample(self, generator: torch.Generator | None) -> Tensor:
        """[D] an action drawn from the policy, as played in training."""
        return sample(apply_mask(self.policy.log(), self.legal), (self.policy.shape[1],), generator)


def repeat_roots(root: Evaluation, embedding: Embedding, trees: int) -> tuple[Evaluation, Embedding]:
    """Every root `trees` times in a row, for a search with several trees per decision."""
    repeated = Evaluation(*(part.repeat_interleave(trees, 0) for part in root))
    return repeated, tuple(part.repeat_interleave(trees, 0) for part in embedding)


def boltzmann(q: Tensor, legal: Tensor, beta: float) -> Tensor:
    """softmax(beta Q) [D, A] over legal actions; 0 for illegal ones, also where nothing is legal."""
    return (beta * q).masked_fill(~legal, -torch.inf).softmax(-1).nan_to_num(0.0)


def decide(result: SearchResult, legal: Tensor, config: DecisionConfig, trees: int = 1) -> Decision:
    """Join the trees of each decision; `legal` [D, A] are the root's legal actions."""
    rows, actions = result.q.shape
    decisions = legal.shape[0]
    if rows != decisions * trees or legal.shape[1] != actions:
        raise UserError(
            f"{rows} searched roots with {actions} actions cannot be {trees} trees for each of "
            f"{decisions} decisions with {legal.shape[1]} actions."
        )
    q = result.q.view(decisions, trees, actions).mean(1)
    visits = result.visits.view(decisions, trees, actions).sum(1)
    low = result.low.view(decisions, trees).amin(1, keepdim=True)
    high = result.high.view(decisions, trees).amax(1, keepdim=True)
    spread = high - low
    scaled = ((q - low) / spread.clamp_min(SMALLEST_RANGE)).clamp(0, 1) * (spread > SMALLEST_RANGE)
    if config.rule == "visits":
        share = (visits / visits.amax(1, keepdim=True).clamp_min(1)) ** config.visit_exponent
        policy = share / share.sum(1, keepdim=True).clamp_min(SMALLEST_RANGE)
    elif config.rule == "improved":
        policy = result.policy.view(decisions, trees, actions).mean(1)
    elif config.legacy_beta is not None:
        policy = boltzmann(q, legal, config.legacy_beta)
    else:
        policy = boltzmann(scaled, legal, config.beta)
    return Decision(policy, q, scaled, result.value.view(decisions, trees).mean(1), visits, legal)


def planner_metrics(decision: Decision, result: SearchResult, prior: Tensor, trees: int = 1) -> dict[str, Tensor]:
    """What to watch in a planner, each [D]; `prior` [D, A] are the network's probabilities before the search.

    value: mean root value; spread: highest minus lowest value of a legal action; entropy of the policy in nats; kl
    from prior to policy; improvement: expected value under the policy minus that under the prior, which a sound
    planner keeps at 0 or more; depth and deepest: mean and greatest length of simulations; ended: share of
    simulations that reached an end; disagreement: standard deviation of an action's value between trees, averaged
    over the policy.
    """
    policy, legal = decision.policy, decision.legal
    prior = prior * legal
    prior = prior / prior.sum(1, keepdim=True).clamp_min(SMALLEST_RANGE)
    log_policy = policy.clamp_min(torch.finfo(policy.dtype).tiny).log()
    log_prior = prior.clamp_min(torch.finfo(policy.dtype).tiny).log()
    high = decision.q.masked_fill(~legal, -torch.inf).amax(1)
    low = decision.q.masked_fill(~legal, torch.inf).amin(1)
    per_tree = result.q.view(-1, trees, policy.shape[1])
    return {
        "value": decision.value,
        "spread": (high - low).clamp_min(0),  # -inf where nothing is legal
        "entropy": -(policy * log_policy).sum(1),
        "kl": (policy * (log_policy - log_prior)).sum(1),
        "improvement": ((policy - prior) * decision.q).sum(1),
        "depth": result.depth.view(-1, trees).mean(1),
        "deepest": result.deepest.view(-1, trees).amax(1),
        "ended": result.ended.view(-1, trees).mean(1),
        "disagreement": (per_tree.std(1, correction=0) * policy).sum(1),
    }
