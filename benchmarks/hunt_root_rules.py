"""Which root rule plays better: PUCT or Gumbel sampling with sequential halving?

    python benchmarks/hunt_root_rules.py runs/hunt/ppo_4x4     # one core, some minutes

Player 1 of msh_4x4 plans among rule-based players whose rules its trees know (true dynamics, true co-players), so that
only the search decides. Leaves are valued by the networks of a PPO run, one seed after the other; the prior is either
those networks' or even. All rules get the same starts, networks, trees and simulations, and decide as the planner does:
the best action of log prior + beta * Q. Intervals are 95 % over games; differences are paired by start.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from machine import commit, describe
from torch import Tensor

from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.game.rules import Game, State
from marlab.hunt.game.views import View, flat_observation
from marlab.hunt.planner.plans import boltzmann, normalised, summarise
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import parse_roles
from marlab.hunt.ppo.network import PlayerNet, load_agents
from marlab.lab.search.search import Embedding, Evaluation, SearchConfig, Transition, search
from marlab.lab.stats import mean_interval

TEAMS = ("NS,NH,NH", "NH,NH,NH", "NS,NS,NS", "RAND,RAND,RAND")
RULES = {
    "puct, c 1.25": {"root": "puct", "c1": 1.25},
    "puct, c 5": {"root": "puct", "c1": 5.0},
    "gumbel": {"root": "gumbel", "considered": 7},
    "without noise": {"root": "gumbel", "considered": 7, "gumbel_scale": 0.0},
}
BETA, GAMMA, SCALE, TREES, DEPTH = 25.0, 0.95, 0.2, 2, 12


class Focal:
    """Player 1, planning."""

    def __init__(self, game: Game, team: str, net: PlayerNet, even: bool, config: SearchConfig, seed: int) -> None:
        self.game, self.net, self.even, self.config = game, net, even, config
        self.players = RulePlayers(game, parse_roles(f"RAND,{team}"))
        self.generator = torch.Generator().manual_seed(seed)
        self.seat = torch.zeros(1, dtype=torch.long)

    def evaluate(self, state: State) -> Evaluation:
        seen = flat_observation(self.game, state, self.seat)[0].squeeze(1)
        logits, value = self.net.logits(seen), self.net.value(seen)
        return Evaluation(torch.zeros_like(logits) if self.even else logits, value, self.game.legal(state)[:, 0])

    def expand(self, embedding: Embedding, action: Tensor) -> Transition:
        state = State(*embedding)
        memory = self.players.begin(state.batch, self.generator)
        others, _ = self.players.act(View(self.game, state), memory, self.generator)
        after, out = self.game.step(state, torch.cat((action.unsqueeze(1), others[:, 1:]), 1))
        return Transition(out.reward[:, 0] * SCALE, GAMMA * ~out.done[:, 0], self.evaluate(after), tuple(after))

    def act(self, state: State) -> Tensor:
        """[B] actions, as `hop_planner` combines trees."""
        root = self.evaluate(state)
        repeated = Evaluation(*(x.repeat_interleave(TREES, 0) for x in root))
        start = tuple(x.repeat_interleave(TREES, 0) for x in state)
        found = summarise(search(repeated, start, self.expand, self.config, self.generator), TREES)
        scaled = normalised(found.q.mean(1), found.low, found.high)
        return boltzmann(scaled, root.legal, BETA, root.logits).argmax(1)


@torch.no_grad()
def play(game: Game, focal: Focal, starts: State, seed: int) -> Tensor:
    """[B] what player 1 earns in one episode from each start."""
    generator = torch.Generator().manual_seed(seed)
    state, earned = starts, torch.zeros(starts.batch)
    memory = focal.players.begin(starts.batch, generator)
    running = torch.ones(starts.batch, dtype=torch.bool)
    while bool(running.any()):
        actions, memory = focal.players.act(View(game, state), memory, generator)
        here = running.nonzero().squeeze(1)
        actions[here, 0] = focal.act(State(*(field[here] for field in state)))
        state, out = game.step(state, actions)
        earned += torch.where(running, out.reward[:, 0], 0.0)
        running &= ~out.done[:, 0]
    return earned


def interval(samples: Tensor) -> str:
    mean, low, high = (float(x) for x in mean_interval(samples.double().numpy()))
    return f"{mean:6.3f} ± {(high - low) / 2:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run of `marlab hunt train --variant ppo` on msh_4x4")
    parser.add_argument("--games", type=int, default=400, help="games per cell, shared by the run's seeds")
    parser.add_argument("--simulations", type=int, nargs="+", default=[16, 64])
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{describe()}, commit {commit()}, {given.games} games a cell, {TREES} trees a decision, {given.run.name}")
    game = make_game(game_config("msh_4x4"))
    agents = load_agents(given.run)
    each = given.games // len(agents.seeds)
    starts = [game.reset(each, torch.Generator().manual_seed(100 + seed)) for seed in agents.seeds]
    for even in (False, True):
        for simulations in given.simulations:
            print(f"\n{'even' if even else 'PPO'} prior, {simulations} simulations a tree")
            print(f"{'':<14}" + "".join(f"{team:>18}" for team in TEAMS) + f"{'all teams':>18}{'seconds':>9}")
            table: dict[str, list[Tensor]] = {}
            for name, rule in RULES.items():
                config = SearchConfig(simulations=simulations, max_depth=DEPTH, **rule)
                began, table[name] = time.process_time(), []
                for team in TEAMS:
                    found = [
                        play(game, Focal(game, team, agents.nets(game, seed)[0], even, config, seed), start, seed)
                        for seed, start in zip(agents.seeds, starts)
                    ]
                    table[name].append(torch.cat(found))
                cells = [*table[name], torch.stack(table[name]).mean(0)]
                told = "".join(f"{interval(cell):>18}" for cell in cells)
                print(f"{name:<14}{told}{time.process_time() - began:>9.1f}", flush=True)
            for name in [name for name in RULES if name.startswith("puct")]:
                gaps = [b - a for a, b in zip(table[name], table["gumbel"])]
                told = "".join(f"{interval(gap):>18}" for gap in [*gaps, torch.stack(gaps).mean(0)])
                print(f"gumbel - {name.removeprefix('puct, '):<5}{told}")


if __name__ == "__main__":
    main()
