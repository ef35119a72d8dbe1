"""How fast and how surely an agent's own models find out what the others want: a table of the score card.

The figures are those of `belief_report`, measured with the likelihoods of the agent's models of others as they are
after training (all of its training seeds apart), beside the exact rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from marlab.hunt.evaluate.agents import Agent
from marlab.hunt.game.rules import Game
from marlab.hunt.others.at_play import LearnedLikelihoods
from marlab.hunt.planner.agent import HopAgent
from marlab.hunt.players.policy import Policy
from marlab.hunt.pretraining.belief_report import BeliefSource, exact_source, measure_beliefs
from marlab.lab.runs.rng import Rngs

EXACT = "exact rules"
GAMES = 512
"""Games that every figure is measured in."""


def belief_source(game: Game, agent: HopAgent) -> BeliefSource:
    """The agent's beliefs, read as beliefs in stag and hare."""
    known = agent.hypotheses or agent.mind.goals  # a follower counts as a hare catcher: it is after hares by itself
    assert agent.mind.others is not None
    stag = known.stag.to(game.device)
    to_goal = torch.stack([stag, 1 - stag])
    likelihoods = LearnedLikelihoods(game, agent.mind.others, agent.hypotheses)
    first = None if agent.hypotheses is None else agent.hypotheses.prior
    return BeliefSource(likelihoods, to_goal, known.evidence.to(game.device), first)


def believes(policy: Policy) -> bool:
    """Whether an agent has models of others that tell goals apart."""
    return isinstance(policy, HopAgent) and policy.mind.others is not None and policy.mind.count > 1


@torch.no_grad()
def beliefs_of(game: Game, agent: Agent | None, number: int, seed: int, games: int) -> dict[str, Any]:
    """The figures of an agent's training seed `number`, or of the exact rules. Everybody sees the same games."""
    policy = None if agent is None else agent.make(game, number)
    source = belief_source(game, policy) if isinstance(policy, HopAgent) else exact_source(game)
    return measure_beliefs(game, source, games, Rngs(seed, game.device))


def belief_rows(by_agent: dict[str, Any]) -> list[list[str]]:
    """One row per agent: means over its training seeds."""
    rows = []
    for name, seeds in by_agent.items():
        figures = list(seeds.values())
        by_step = [_mean([f["true_type_by_step"][k] for f in figures]) for k in (1, 2, 4)]
        prior = _mean([f["prior_by_episode"][10] for f in figures])
        turned = _mean([f["switch"]["share"] for f in figures])
        steps = _mean([f["switch"]["mean_steps"] for f in figures])
        rows.append(
            [name, str(len(figures)), *(f"{x:.3f}" for x in by_step), f"{prior:.3f}", f"{turned:.1%}", f"{steps:.1f}"]
        )
    return rows


HEADER = ["beliefs of", "seeds", "true goal, t = 1", "t = 2", "t = 4", "at the start of episode 11",
          "turned within 4 informative steps", "steps it took"]  # fmt: skip


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
