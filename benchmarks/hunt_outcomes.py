"""What resampling the others in a tree is worth: outcomes kept per action of a node (1 freezes them at the first try).

    python benchmarks/hunt_outcomes.py                  # shipped hop_4x4 among four teams: minutes on one core

One planner in seat 1 among rule-based players, several episodes with the same ones, all settings on the same starts:
the mean reward of an episode with its standard error over games.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import torch
from machine import commit, describe

import marlab.hunt as hunt
from marlab.hunt.game.views import View
from marlab.hunt.planner.agent import HopAgent, HopAgents
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import parse_roles, team_members

TEAMS = ("3NH", "NS+2NH", "2NS+NH", "3NS")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", default="hop_4x4")
    parser.add_argument("--games", type=int, default=64)
    parser.add_argument("--episodes", type=int, default=4)
    parser.add_argument("--simulations", type=int, default=64)
    parser.add_argument("--outcomes", type=int, nargs="+", default=[1, 4, 8])
    a = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{describe()}, commit {commit()}; {a.simulations} simulations, {a.games} games of {a.episodes} episodes")
    trained = hunt.load(a.agent)
    assert isinstance(trained, HopAgents)
    for team in TEAMS:
        told = []
        for outcomes in a.outcomes:
            mean, error = measured(trained, team, outcomes, a.simulations, a.games, a.episodes)
            told.append(f"{outcomes}: {mean:.3f} ± {error:.3f}")
        print(f"{team:<8}" + "   ".join(told), flush=True)


@torch.no_grad()
def measured(
    trained: HopAgents, team: str, outcomes: int, simulations: int, games: int, episodes: int
) -> tuple[float, float]:
    """Mean reward of the planner and its standard error over games."""
    generator = torch.Generator().manual_seed(0)
    game = hunt.make_game(trained.game, generator)
    plan = trained.config.plan
    search = replace(plan.search, outcomes=outcomes, simulations=simulations)
    belief = replace(trained.config.beliefs, discount=0.9)
    mind = trained.mind.one(trained.seeds[0])
    agent = HopAgent(game, mind, seats=[0], plan=replace(plan, search=search), belief=belief)
    others = RulePlayers(game, parse_roles(",".join(["RAND", *team_members(team)])))
    memory, theirs = agent.begin(games, generator), others.begin(games, generator)
    earned = torch.zeros(games)
    for _ in range(episodes):
        state = game.reset(games, generator)
        running = torch.ones(games, dtype=torch.bool)
        while bool((running & state.alive[:, 0]).any()):
            view = View(game, state)
            mine, memory = agent.act(view, memory, generator)
            actions, theirs = others.act(view, theirs, generator)
            actions[:, 0] = mine[:, 0]
            after, outcome = game.step(state, actions)
            earned += outcome.reward[:, 0] * running
            memory, theirs = agent.observe(view, outcome, memory), others.observe(view, outcome, theirs)
            state, running = after.where(~running, state), running & ~outcome.over
        everywhere = torch.ones(games, dtype=torch.bool)
        memory, theirs = agent.reset(memory, everywhere, generator), others.reset(theirs, everywhere, generator)
    each = earned / episodes
    return float(each.mean()), float(each.std() / games**0.5)


if __name__ == "__main__":
    main()
