"""Six players on 12x12 with two stags, trained and scored on machines that have torch and numpy only.

    python benchmarks/hunt_six.py --device cuda --seconds 450 --output-dir six ppo       # or ppo-helped, or hop
    python benchmarks/hunt_six.py --tiny --output-dir six ppo ppo-helped hop             # a minute on a CPU

`ppo` is `marlab hunt train --variant ppo --preset msh_12x12_6p`, told the shortest ways; `ppo-helped` gets the offline
data and the guests that planners get, too; `hop` is `marlab hunt train --preset hop_12x12_6p`, its offline data and
models of others made first. All stop in time, are saved as they are (NAME.pt, which `marlab hunt eval` takes) and then
play: self-play, and one of them among teams of rule-based players, beside rules in the same seat.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from hunt_answers_models import keep_models, pretrain

from marlab.hunt.api import load
from marlab.hunt.commands import TRAININGS
from marlab.hunt.data.collect import in_memory
from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.evaluate.agents import only_in
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.game.rules import Game
from marlab.hunt.planner.agent import KIND as HOP_KIND
from marlab.hunt.players.guests import GuestConfig
from marlab.hunt.players.policy import Policy, Team
from marlab.hunt.players.rollout import play
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import parse_roles, team_members
from marlab.hunt.ppo.config import NetworkConfig, PPOTrainConfig
from marlab.hunt.ppo.network import KIND as PPO_KIND
from marlab.hunt.ppo.train import PPOTrainer
from marlab.hunt.selfplay import trainer as planning
from marlab.hunt.selfplay.config import HopTrainConfig
from marlab.lab.config import from_dict, load_preset
from marlab.lab.runs.checkpoint import save_checkpoint

GAME = "msh_12x12_6p"
TEAMS = ("5NS", "5NH", "NS+4NH", "2NS+3NH", "5RAND")
SCORING_S = 150.0
"""Kept back for playing."""
EPOCHS = 5
"""Of the models of others."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", choices=("ppo", "ppo-helped", "hop"))
    parser.add_argument("--seeds", default="0..2")
    parser.add_argument("--steps", type=int, default=0, help="game steps per seed; 0: as many as the time allows")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--output-dir", type=Path, required=True)
    a = parser.parse_args()
    torch.set_num_threads(1)
    a.output_dir.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + a.seconds
    for what in a.what:
        trainer, kind = (hop(a), HOP_KIND) if what == "hop" else (ppo(a, helped=what == "ppo-helped"), PPO_KIND)
        found = trained(trainer, until - SCORING_S, a.output_dir / f"{what}.jsonl")
        agents = trainer.agents() if what == "hop" else trainer.state_dict()["agents"]
        save_checkpoint(a.output_dir / f"{what}.pt", kind, trainer.step, {"agents": agents})
        keep(a.output_dir, what, found)
        keep(
            a.output_dir, what, {**found, **scored(a.output_dir / f"{what}.pt", 4 if a.tiny else 150, a.device, until)}
        )


def ppo(a: argparse.Namespace, *, helped: bool) -> PPOTrainer:
    steps, games = (256, 4) if a.tiny else (a.steps or 6_000_000, 256)
    config = PPOTrainConfig(
        game=game_config(GAME), seeds=a.seeds, total_steps=steps, num_envs=games, device=a.device,
        network=NetworkConfig(hidden=(256, 256), paths=True),
    )  # fmt: skip
    if not helped:
        return PPOTrainer(config, None)
    config = replace(config, guests=GuestConfig(share=0.6), warm_updates=2 if a.tiny else 2500)
    return PPOTrainer(config, in_memory(HuntCollectConfig(game=config.game, rows=600 if a.tiny else 200_000)))


def hop(a: argparse.Namespace) -> planning.HopTrainer:
    preset = load_preset("hop_12x12_6p", TRAININGS)
    config = from_dict(HopTrainConfig, preset.values, "the preset")
    config = replace(config, seeds=a.seeds, device=a.device, record=a.device != "cpu", load_data=Path("in memory"))
    if a.steps:
        config = replace(config, total_steps=a.steps)
    if a.tiny:
        config = replace(
            config, num_envs=2, steps=2, total_steps=8, learn=replace(config.learn, warm_updates=2, updates=1),
            plan=replace(config.plan, trees=1, search=replace(config.plan.search, simulations=2)),
        )  # fmt: skip
    rows = 600 if a.tiny else config.pipeline.rows
    data = in_memory(HuntCollectConfig(game=config.game, rows=rows))
    planning.load_dataset = lambda path, game: data  # type: ignore[assignment]  # a machine without files of rows
    models = a.output_dir / "others.pt"
    if not models.exists():
        began, size = time.monotonic(), {"hidden": config.hidden, "paths": config.paths}
        made, found = pretrain(a, data, "outcome", "joint", 0, 1e18, epochs=2 if a.tiny else EPOCHS, **size)
        keep_models(models, made)
        top1 = found[-1]["moa/validation/top1"]
        print(f"models of others: top-1 {top1:.3f}, {time.monotonic() - began:.0f} s", flush=True)
    return planning.HopTrainer(replace(config, load_moa=models))


def trained(trainer: Any, until: float, log: Path) -> dict[str, Any]:
    """Iterate until the end or until the time is up."""
    began, row = time.monotonic(), {}
    with log.open("w") as file:
        while trainer.step < trainer.total and time.monotonic() < until:
            row = {k: v for k, v in trainer.iterate().items() if "/" in k and not k.startswith(("moa/", "belief/"))}
            file.write(json.dumps({"step": trainer.step, **row}) + "\n")
            file.flush()
    seconds = round(time.monotonic() - began, 1)
    return {"iterations": trainer.step, "of": trainer.total, "seconds": seconds, "last": row}


@torch.no_grad()
def scored(file: Path, games: int, device: str, until: float) -> dict[str, Any]:
    """Mean rewards of the first seed: of everybody in self-play, and of seat 1 among teams."""
    game = make_game(game_config(GAME), device=device)
    agent = load(file).policy(game)
    results: dict[str, Any] = {"self-play": mean(game, agent, games)}
    for team in TEAMS:
        if time.monotonic() > until - 10:
            break
        roles = ["RAND", *team_members(team)]
        others = RulePlayers(game, parse_roles(",".join(roles)))
        only_in(agent, torch.arange(game.players, device=game.device).eq(0).expand(games, -1))
        mixed = Team(game, [agent, others], [0, *[1] * (game.players - 1)])
        rows = {"agent": mean(game, mixed, games, 0)}
        for rule in ("NS", "NH", "RAND"):
            rows[rule] = mean(game, RulePlayers(game, parse_roles(",".join([rule, *roles[1:]]))), games, 0)
        results[team] = rows
    return {"scores": results}


def mean(game: Game, policy: Policy, games: int, seat: int | None = None) -> list[float]:
    """Mean reward per player (or of one seat) over episodes, and its standard error."""
    generator = torch.Generator(device=game.device).manual_seed(20_260_303)
    reward = play(game, policy, games, generator).reward
    each = reward.mean(1) if seat is None else reward[:, seat]
    return [round(float(each.mean()), 4), round(float(each.std() / len(each) ** 0.5), 4)]


def keep(folder: Path, name: str, found: dict[str, Any]) -> None:
    path = folder / "results.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**results, name: found}, indent=1))
    print(name, json.dumps({k: v for k, v in found.items() if k != "last"}), flush=True)


if __name__ == "__main__":
    main()
