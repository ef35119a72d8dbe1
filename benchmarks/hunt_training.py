"""What an iteration of planning agents costs, and what a planner with oracle models is worth.

    python benchmarks/hunt_training.py                          # seconds per iteration of 3,000 game steps, CPU
    python benchmarks/hunt_training.py --device cuda --seeds 0..4 [--record]
    python benchmarks/hunt_training.py --oracle --episodes 400   # with exact models of the others

An iteration is 500 games x 6 steps of every seed, every living player searching 5 trees of 64 simulations, then all
updates. The lab note's HOP+-MCTS took 873 s for as many steps of one seed. With --oracle one focal player with the
true rules as models of the others, an even prior and rule-based rollouts as leaf values (and, for comparison, the
value 0) plays single episodes among fixed teams.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from machine import commit, describe

from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import GameConfig, game_config
from marlab.hunt.game.rules import Game
from marlab.hunt.game.views import View
from marlab.hunt.others.belief import GOAL_KINDS
from marlab.hunt.others.copies import copy_generators
from marlab.hunt.planner.config import PlanConfig
from marlab.hunt.planner.coplayers import RuleCoPlayers
from marlab.hunt.planner.dynamics import TrueGame
from marlab.hunt.planner.nets import PlayerNets
from marlab.hunt.planner.planner import Planner
from marlab.hunt.players.policy import Memory, Policy, Team
from marlab.hunt.players.rollout import play
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind
from marlab.hunt.selfplay.config import HopTrainConfig
from marlab.hunt.selfplay.trainer import SelfPlayTrainer
from marlab.lab.search.search import SearchConfig

NOTE_SECONDS = 873.0
TEAMS = ((Kind.NS, Kind.NH, Kind.NH), (Kind.NH, Kind.NH, Kind.NH), (Kind.NS, Kind.NS, Kind.NS))


def iterations(arguments: argparse.Namespace) -> dict[str, Any]:
    """Seconds of an iteration, after a few that let episodes get going."""
    config = HopTrainConfig(
        variant="hop", phases="P6", game=game_config(arguments.game), seeds=arguments.seeds, device=arguments.device
    )
    search = replace(config.plan.search, simulations=arguments.simulations)
    config = replace(
        config,
        plan=replace(config.plan, trees=arguments.trees, search=search, engine="graph" if arguments.record else "auto"),
    )
    trainer = SelfPlayTrainer(config)
    for _ in range(arguments.warm):
        trainer.iterate()
    spent, parts = [], []
    for _ in range(arguments.iterations):
        start = time.perf_counter()
        row = trainer.iterate()
        spent.append(time.perf_counter() - start)
        parts.append((row["time/rollout"], row["time/train"]))
    seconds = sum(spent) / len(spent)
    return {
        "game": arguments.game, "seeds": len(trainer.seeds), "game_steps": config.num_envs * config.steps,
        "trees": arguments.trees, "simulations": arguments.simulations, "seconds": seconds,
        "rollout": sum(a for a, _ in parts) / len(parts), "train": sum(b for _, b in parts) / len(parts),
        "times_the_note": NOTE_SECONDS * len(trainer.seeds) / seconds,
    }  # fmt: skip


class Oracle(Policy):
    """A planner in seat 0 that knows the others' rules."""

    def __init__(self, game: Game, team: tuple[Kind, ...], simulations: int, rollout: float) -> None:
        nets = PlayerNets(game.config, 2, 1, copy_generators((0,), 1, "blank"))
        for weights in nets.parameters():
            weights.data.zero_()  # an even prior and the value 0
        search = SearchConfig(simulations=simulations, root="puct", outcomes=8, max_depth=12)
        plan = PlanConfig(trees=1, search=search, target="boltzmann", beta_end=1000.0)
        self.planner = Planner(game, nets, RuleCoPlayers(game), TrueGame(game), plan, rollout=rollout)
        self.goals = torch.tensor([[float(kind == goal) for goal in GOAL_KINDS] for kind in team])

    def act(self, view: View, memory: Memory, generator: torch.Generator) -> tuple[torch.Tensor, Memory]:
        state = view.state
        want = torch.zeros_like(state.alive)
        want[:, 0] = state.alive[:, 0] & ~view.game.over(state)
        belief = self.goals.to(state.cell.device).expand(state.batch, state.alive.shape[1], -1, -1)
        return self.planner.plan(state, belief, want, generator).policy.argmax(2), memory


def oracle(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    game = make_game(GameConfig(), device=arguments.device)
    found = []
    for rollout in (1.0, 0.0):
        for team in TEAMS:
            rules = RulePlayers(game, [Kind.RAND, *team])
            policy = Team(game, [rules, Oracle(game, team, arguments.simulations, rollout)], [1, 0, 0, 0])
            generator = torch.Generator(device=arguments.device).manual_seed(0)
            reward = play(game, policy, arguments.episodes, generator).reward[:, 0]
            half = 1.96 * float(reward.std()) / len(reward) ** 0.5
            found.append({"leaf": "rollout" if rollout else "0", "team": "+".join(k.name for k in team),
                          "reward": float(reward.mean()), "half": half})  # fmt: skip
    return found


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--device", default="cpu")
    words.add_argument("--game", default="msh_4x4")
    words.add_argument("--seeds", default="0")
    words.add_argument("--trees", type=int, default=5)
    words.add_argument("--simulations", type=int, default=64)
    words.add_argument("--warm", type=int, default=6)
    words.add_argument("--iterations", type=int, default=5)
    words.add_argument("--record", action="store_true", help="record the search as CUDA graphs")
    words.add_argument("--oracle", action="store_true", help="play with exact models of the others instead of timing")
    words.add_argument("--episodes", type=int, default=400)
    words.add_argument("--json", type=Path)
    arguments = words.parse_args()
    torch.set_float32_matmul_precision("high")
    print(f"{describe()}, commit {commit()}")
    found: Any
    if arguments.oracle:
        found = oracle(arguments)
        for row in found:
            print(f"leaf {row['leaf']:<8} {row['team']:<10} focal reward {row['reward']:.3f} ± {row['half']:.3f}")
    else:
        found = iterations(arguments)
        print(
            f"{found['game']}, {found['seeds']} seed(s) x {found['game_steps']} game steps, {found['trees']} trees x "
            f"{found['simulations']} simulations: {found['seconds']:.2f} s per iteration (games "
            f"{found['rollout']:.2f}, learning {found['train']:.2f}), {found['times_the_note']:.0f} x the note's pace"
        )
    if arguments.json is not None:
        arguments.json.write_text(json.dumps({"machine": describe(), "commit": commit(), "found": found}, indent=1))


if __name__ == "__main__":
    main()
