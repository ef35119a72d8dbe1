"""PPO trainings of the hunt's protocol, many after the other, on machines that have torch and numpy only.

    python benchmarks/hunt_rivals.py --device cuda --seconds 450 --output-dir rivals rivals populations
    python benchmarks/hunt_rivals.py --device cuda --output-dir rivals "response:NOISY(0.2,NS)+2NH"
    python benchmarks/hunt_rivals.py --tiny --output-dir rivals rivals populations   # a minute on a CPU

`rivals` are PPO and prosocial PPO with everything that planning agents get: the same offline data, guests in 60 % of
the games, shortest ways where planners have them, five seeds. `populations` are PPO players of other seeds without any
of it: people to meet, not rivals. `response:TEAM` is a PPO player trained for that team at five times the budget, with
the same offline data (else it finds the hares and stays there) and four times as many games side by side;
--populations NAME=FILE names trained PPO players that may be in it, each training seed in its share of the games.
Each is one file NAME.pt that `marlab hunt eval` takes; one that is there already is not trained again, and one that the
time cuts short is saved as it is with the steps that it had. results.json keeps what each took and earned.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from marlab.hunt.data.collect import in_memory
from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.data.dataset import Dataset
from marlab.hunt.evaluate.agents import find_agent
from marlab.hunt.game.config import game_config
from marlab.hunt.game.views import View
from marlab.hunt.players.guests import GuestConfig
from marlab.hunt.players.policy import Memory, Policy, Team
from marlab.hunt.players.seats import team_members
from marlab.hunt.ppo.config import NetworkConfig, PPOTrainConfig
from marlab.hunt.ppo.network import KIND
from marlab.hunt.ppo.train import PPOTrainer
from marlab.lab.runs.checkpoint import save_checkpoint

GAMES = ("msh_4x4", "msh_8x8_b5", "msh_far_loose")
ROWS = {"msh_4x4": 107_010, "msh_8x8_b5": 250_000, "msh_far_loose": 107_010}
PATHS = ("msh_8x8_b5", "msh_far_loose")
"""Games in which planners are told the shortest ways, so rivals are, too."""
STEPS = 1_000_000
RESPONSE = 5
"""How much longer a response is trained than a rival."""
GUESTS = GuestConfig(share=0.6)


def main() -> None:
    arguments = parse()
    torch.set_num_threads(1)
    until = time.monotonic() + arguments.seconds
    arguments.output_dir.mkdir(parents=True, exist_ok=True)
    data: dict[str, Dataset] = {}
    known = dict(text.split("=", 1) for text in arguments.populations)
    for what in arguments.what:
        for game in arguments.games:
            for name, config in trainings(what, game, arguments):
                file = arguments.output_dir / f"{name}.pt"
                if file.exists() or time.monotonic() > until - 5:
                    continue
                if config.warm_updates > 1 and game not in data:
                    rows = 3000 if arguments.tiny else ROWS[game]
                    data[game] = in_memory(HuntCollectConfig(game=config.game, rows=rows))
                team = team_members(what.partition(":")[2]) if ":" in what else []
                met = {place + 1: known[one] for place, one in enumerate(team) if one in known}
                keep(arguments.output_dir, name, train(config, data.get(game), file, until, met))


def trainings(what: str, game: str, arguments: argparse.Namespace) -> list[tuple[str, PPOTrainConfig]]:
    """(name, settings) of what is to be trained; warm_updates of 1 marks a training without offline data."""
    short = game.removeprefix("msh_")
    steps, games = (20_000, 32) if arguments.tiny else (int(STEPS * arguments.length), 256)
    base = PPOTrainConfig(
        game=game_config(game),
        seeds=arguments.seeds,
        total_steps=steps,
        num_envs=games,
        device=arguments.device,
        network=NetworkConfig(hidden=(256, 256) if "8x8" in game else (128, 128), paths=game in PATHS),
    )
    if what == "rivals":
        helped = replace(base, guests=GUESTS, warm_updates=100 if arguments.tiny else 2500)
        return [(f"ppo_{short}", helped), (f"ps-ppo_{short}", replace(helped, variant="ps-ppo"))]
    alone = replace(base, warm_updates=1)
    if what == "populations":
        return [(f"population_{short}", replace(alone, seeds="100..104"))]
    head, _, team = what.partition(":")
    if head != "response" or not team:
        raise SystemExit(f"'{what}' is neither rivals, populations nor response:TEAM.")
    met = dict(text.split("=", 1) for text in arguments.populations)
    # Trained players take their seats after the trainer is made; until then hare catchers keep them.
    roles = ",".join(["PPO", *("NH" if name in met else name for name in team_members(team))])
    games *= 1 if arguments.tiny else 4
    response = replace(
        base, agent_roles=roles, stay=0.95, total_steps=RESPONSE * steps, num_envs=games, seeds="0",
        warm_updates=100 if arguments.tiny else 2500,
    )  # fmt: skip
    return [(f"response_{short}_{file_name(team)}", response)]


def file_name(team: str) -> str:
    return "".join(letter if letter.isalnum() else "." for letter in team)


def train(
    config: PPOTrainConfig, data: Dataset | None, file: Path, until: float, met: dict[int, str]
) -> dict[str, Any]:
    """Train until the end or until the time is up, and save the agents. met: files of trained players by seat."""
    began = time.monotonic()
    trainer = PPOTrainer(config, data if config.warm_updates > 1 else None)
    if met:
        seat_trained(trainer, met)
    row: dict[str, Any] = {}
    while trainer.step < trainer.total and time.monotonic() < until:
        row = dict(trainer.iterate())
    save_checkpoint(file, KIND, trainer.step, {"agents": trainer.state_dict()["agents"]})
    seconds = time.monotonic() - began
    earned = [row.get(f"seed_{seed}/episode/reward") for seed in trainer.seeds]
    learner = row.get(f"episode/reward_player_{trainer.seats[0] + 1}")
    return {"iterations": trainer.step, "of": trainer.total, "seconds": seconds, "reward": earned, "learner": learner}


def seat_trained(trainer: PPOTrainer, met: dict[int, str]) -> None:
    """Trained players in some seats; a game has one seed of each population, as the games that are scored have."""
    world = trainer.world.world
    game, others = world.game, world.others
    assert others is not None
    policies, places = [others], [0] * game.players
    for path in dict.fromkeys(met.values()):
        found = find_agent(path)
        for seat in (seat for seat, its in met.items() if its == path):
            places[seat] = len(policies)
        policies.append(BySeed([found.make(game, seed) for seed in found.seeds], world.games, game.device))
    world.others = Team(game, policies, places)
    world.memory = world.others.begin(world.games, world.generator)


class BySeed(Policy):
    """The training seeds of a population, each in its share of the games. Only for players without a memory."""

    def __init__(self, seeds: list[Policy], games: int, device: torch.device) -> None:
        self.seeds = seeds
        self.number = (torch.arange(games, device=device) % len(seeds)).view(1, -1, 1)

    def act(self, view: View, memory: Memory, generator: torch.Generator) -> tuple[Tensor, Memory]:
        each = torch.stack([one.act(view, {}, generator)[0] for one in self.seeds])  # [seeds, B, n]
        return each.gather(0, self.number.expand(1, *each.shape[1:])).squeeze(0), memory


def keep(folder: Path, name: str, found: dict[str, Any]) -> None:
    """Add to results.json and say it."""
    path = folder / "results.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**results, name: found}, indent=1))
    print(f"{name}: {found}", flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", help="rivals, populations, response:TEAM")
    parser.add_argument("--games", nargs="+", default=list(GAMES[:2]), choices=GAMES)
    parser.add_argument("--seeds", default="0..4")
    parser.add_argument("--populations", nargs="*", default=[], help="NAME=FILE: trained players of response teams")
    parser.add_argument("--length", type=float, default=1.0, help="times as many steps")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop in time for this")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tiny", action="store_true", help="a few iterations, to see that it runs")
    parser.add_argument("--output-dir", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()
