"""How well planners foretell each other in self-play, action by action, beside what their own plans could have told.

    python benchmarks/hunt_recall.py runs/hunt/hop [--games 64]

Players draw from their plans, so even who knew a plan would often be wrong: the recall of an action is at most about
the share of its draws in which it was also the plan's best.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from marlab.hunt.game.build import make_game
from marlab.hunt.game.rules import ACTION_NAMES
from marlab.hunt.game.views import View
from marlab.hunt.others.moa import others_of
from marlab.hunt.planner.agent import HopAgent, load_hop


@torch.no_grad()
def measure(run: Path, games: int, seed: int) -> list[str]:
    agents = load_hop(run)
    generator = torch.Generator().manual_seed(seed)
    game = make_game(agents.game, generator)
    agent = HopAgent(game, agents.mind.one(agents.seeds[0]), greedy=False)
    state, memory = game.reset(games, generator), agent.begin(games, generator)
    pairs = others_of(game)
    sums = torch.zeros(3, game.actions)  # how often each action was done, foretold as the likeliest, the plan's best
    while not bool(game.over(state).all()):
        view = View(game, state)
        actions, memory = agent.act(view, memory, generator)
        told = agent.explain()
        there = state.alive & ~game.over(state).unsqueeze(1)
        both = there.unsqueeze(2) & there[:, pairs]  # [B, n, n - 1] observer and other
        did = actions[:, pairs][both]
        best = told.plan.policy.argmax(-1)[:, pairs][both]
        foretold = told.expected.argmax(-1)[both]
        for row, right in enumerate((torch.ones_like(did), foretold == did, best == did)):
            sums[row].index_add_(0, did, right.float())
        state, outcome = game.step(state, actions)
        memory = agent.observe(view, outcome, memory)
    done, right, own = sums
    lines = [f"{'action':<12}{'share':>8}{'recall':>8}{'own best':>10}"]
    for name, *values in zip(ACTION_NAMES, done / done.sum(), right / done, own / done):
        lines.append(f"{name:<12}" + "".join(f"{float(v):>9.3f}" for v in values))
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--games", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args()
    print("\n".join(measure(told.run, told.games, told.seed)))
