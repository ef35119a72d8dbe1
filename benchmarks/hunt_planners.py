"""Planners of the hunt's protocol: variants of a preset, all seeds of each side by side; needs torch and numpy only.

    python benchmarks/hunt_planners.py --preset hop_4x4 --seeds 10..14 --iterations 40 --device cuda --estimate
    python benchmarks/hunt_planners.py --preset hop_4x4 --seeds 10..14 --iterations 40 --device cuda --seconds 400 \\
        --output-dir planners hopplus-mcts direct-om mcts-self mcts-random
    python benchmarks/hunt_planners.py --tiny --output-dir planners mcts-self   # a minute on a CPU

Every variant has the preset's data, guests, maps and warm start and the same iterations. Models of others are
pretrained as `marlab hunt train` does it, or taken from --models (with codes; one file for all seeds). A variant is one
file VARIANT.pt that `marlab hunt eval` and hunt_protocol.py take; one that is there already is not trained again. It is
saved every SAVE iterations, so that little is lost, and one that --seconds cut short says so in results.json.
"""

from __future__ import annotations

import argparse
import json
import time
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import marlab.hunt.selfplay.trainer as training
from marlab.hunt.commands import TRAININGS
from marlab.hunt.data.collect import in_memory
from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.data.dataset import Dataset
from marlab.hunt.others.config import PretrainGoalsConfig
from marlab.hunt.others.models import save_goal_models
from marlab.hunt.planner.agent import KIND, load_hop
from marlab.hunt.planner.config import VARIANTS
from marlab.hunt.pretraining.answers import codebook_of, predict
from marlab.hunt.pretraining.data import goal_data
from marlab.hunt.pretraining.run import make_trainer
from marlab.hunt.selfplay.config import HopTrainConfig
from marlab.hunt.selfplay.offline import SOURCES
from marlab.lab.config import from_dict
from marlab.lab.runs.checkpoint import save_checkpoint

SAVE = 10
EPISODES = 300
"""Fresh episodes of self-play for every seed after its training."""


def main() -> None:
    arguments = parse()
    torch.set_num_threads(1)
    until = time.monotonic() + arguments.seconds
    arguments.output_dir.mkdir(parents=True, exist_ok=True)
    if arguments.estimate:
        print(estimate(arguments))
        return
    data: Dataset | None = None
    for variant in arguments.variants:
        file = arguments.output_dir / f"{variant}.pt"
        if file.exists() or time.monotonic() > until - arguments.least:
            continue
        config = settings(variant, arguments)
        rows = 4000 if arguments.tiny else config.pipeline.rows
        data = data or in_memory(HuntCollectConfig(game=config.game, rows=rows))
        if config.load_moa is not None and not config.load_moa.exists():
            pretrain(config, data, config.load_moa)
        keep(arguments.output_dir, variant, train(config, data, file, until))


def settings(variant: str, arguments: argparse.Namespace) -> HopTrainConfig:
    """The preset with another variant, other seeds and another length."""
    preset = tomllib.loads((TRAININGS / f"{arguments.preset}.toml").read_text())
    for text in arguments.set:
        name, _, value = text.partition("=")
        *path, last = name.split(".")
        node = preset
        for word in path:
            node = node.setdefault(word, {})
        node[last] = json.loads(value)
    config = from_dict(HopTrainConfig, {**preset, "variant": variant}, f"the preset {arguments.preset}")
    if arguments.tiny:
        config = replace(
            config,
            num_envs=16,
            learn=replace(config.learn, warm_updates=5, updates=2, moa_updates=2),
            pipeline=replace(config.pipeline, goal_epochs=3),
        )
    config = replace(
        config,
        seeds=arguments.seeds,
        device=arguments.device,
        plan=replace(config.plan, engine="auto" if arguments.device == "cpu" else "graph"),
        load_data=Path("memory"),
        total_steps=arguments.iterations * config.num_envs * config.steps,
    )
    if config.parts.coplayers != "learned":
        return config
    source = SOURCES[config.parts.goals][0]
    given = arguments.models is not None and source == "history"
    return replace(config, load_moa=arguments.models if given else arguments.output_dir / f"others_{source}.pt")


def pretrain(config: HopTrainConfig, data: Dataset, file: Path) -> None:
    """Models of others as the phase P2 of `marlab hunt train` makes them."""
    source, epochs = SOURCES[config.parts.goals][0], config.pipeline.goal_epochs
    trainer = make_trainer(
        PretrainGoalsConfig(
            goal_source=source, hidden=config.hidden, paths=config.paths, epochs=epochs,
            vae_epochs=min(config.pipeline.vae_epochs or epochs // 3, max(1, epochs // 2)),
            batch_size=config.pipeline.goal_batch_size, belief_games=0, overfit_check=False, device=config.device,
        ),
        data,
    )  # fmt: skip
    began = time.monotonic()
    while trainer.step < trainer.total:
        trainer.iterate()
    models, book = trainer.averaged.eval(), None
    if models.vae is not None:
        seen = goal_data(config.game, data.part("train"), "outcome", 10, trainer.device, paths=config.paths)
        with torch.no_grad():
            code = predict(models, seen, trainer.final_stage).code
        assert code is not None
        book = codebook_of(models, seen, code, 0)
    save_goal_models(file, models, book, trainer.step)
    print(f"{file.name}: {time.monotonic() - began:.0f} s", flush=True)


def train(config: HopTrainConfig, data: Dataset, file: Path, until: float) -> dict[str, Any]:
    """Train until the end or until the time is up, and save the agents in numbers of 16 bits."""
    began = time.monotonic()
    training.load_dataset = lambda path, game=None: data  # type: ignore[assignment]
    trainer = training.SelfPlayTrainer(config, print)
    trainer.warm_up()
    warm = time.monotonic() - began
    unfinished, row, marks = file.with_suffix(".part"), {}, []
    while trainer.step < trainer.total and time.monotonic() < until - 25:
        row = dict(trainer.iterate())
        if trainer.step % SAVE == 0 or trainer.step in (1, 3):
            marks.append([trainer.step, round(time.monotonic() - began, 1), row.get("episode/reward")])
            print(f"{file.stem}: {marks[-1]}, beside guests {row.get('guests/reward')}", flush=True)
            save_checkpoint(unfinished, KIND, trainer.step, {"agents": trainer.agents()})
    save_checkpoint(unfinished, KIND, trainer.step, {"agents": trainer.agents()})
    load_hop(unfinished).save(file, half=True)
    unfinished.unlink()
    found: dict[str, Any] = {
        "iterations": trainer.step,
        "of": trainer.total,
        "warm": warm,
        "seconds": time.monotonic() - began,
        "training": [row.get(f"seed_{seed}/episode/reward") for seed in trainer.seeds],
        "marks": marks,
    }
    if time.monotonic() < until - 45:
        played = trainer.episodes("greedy", EPISODES, "evaluation", lambda: None)
        found["self-play"] = [round(float(one.reward.mean()), 4) for one in played]
    return found


def keep(folder: Path, name: str, found: dict[str, Any]) -> None:
    """Add to results.json and say it."""
    path = folder / "results.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**results, name: found}, indent=1))
    print(f"{name}: {found}", flush=True)


def estimate(arguments: argparse.Namespace) -> str:
    """Seconds of all variants, from two iterations without a warm start."""
    lines = []
    for variant in arguments.variants:
        trainer = training.SelfPlayTrainer(replace(settings(variant, arguments), load_data=None, load_moa=None))
        trainer.iterate()
        began = time.monotonic()
        trainer.iterate()
        each = time.monotonic() - began
        lines.append(
            f"{variant}: {each:.2f} s an iteration, about {each * arguments.iterations:.0f} s and a warm start"
        )
    return "\n".join(lines)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variants", nargs="+", choices=list(VARIANTS))
    parser.add_argument("--preset", default="hop_4x4")
    parser.add_argument(
        "--set", nargs="*", default=[], help="other settings than the preset's, such as plan.gamma=0.98"
    )
    parser.add_argument("--seeds", default="0..4")
    parser.add_argument("--iterations", type=int, default=40)
    parser.add_argument(
        "--models", type=Path, default=None, help="models of others with codes; pretrained if not given"
    )
    parser.add_argument("--seconds", type=float, default=1e9, help="stop in time for this")
    parser.add_argument("--least", type=float, default=60.0, help="no variant is begun with fewer of them left")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--estimate", action="store_true", help="say how long it takes, and train nothing")
    parser.add_argument("--tiny", action="store_true", help="to see that it runs")
    parser.add_argument("--output-dir", type=Path, default=Path("planners"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
