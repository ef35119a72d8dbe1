"""What each part of a planning agent is worth: a ladder of trainings with one part changed, scored among strangers.

    python benchmarks/hunt_ladder.py --estimate --device cuda                 # how long it would take, measured
    python benchmarks/hunt_ladder.py --device cuda --seconds 420 --output-dir ladder [--cells base guests-off ...]
    python benchmarks/hunt_ladder.py --tiny --output-dir ladder --cells base  # minutes on a CPU

Every rung is a training of `hop` on 4x4 (or --game) with the settings of the preset hop_quick (but for BASE), three
seeds, the same offline data, models of others that were pretrained on it, and the same number of iterations. Scored:
six scenarios named here, RUNS runs of STEPS steps, the episodes that end in the last half; what KEEP players want in
run r is the same for every rung. A rung that has its scores is not done again; several processes can share the rungs
(--part 0/4, 1/4, ...), and whoever needs models first makes them (--prepare makes them and ends).
--table prints what is there.
"""

from __future__ import annotations

import argparse
import json
import time
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hunt_answers_models import keep_models, pretrain, world_model

import marlab.hunt.pretraining.answers as answers
import marlab.hunt.selfplay.trainer as training
from marlab.hunt.commands import TRAININGS
from marlab.hunt.data.collect import in_memory
from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.data.dataset import Dataset
from marlab.hunt.evaluate.agents import Agent, Planners
from marlab.hunt.evaluate.play import Cell, Starts, play_stream, seat_all
from marlab.hunt.evaluate.scenarios import Scenario, team
from marlab.hunt.evaluate.scores import scores_of
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.planner.agent import KIND, agents_of
from marlab.hunt.selfplay.config import HopTrainConfig
from marlab.hunt.selfplay.offline import SOURCES
from marlab.lab.config import from_dict, to_dict
from marlab.lab.device import choose_device
from marlab.lab.runs.checkpoint import load_checkpoint, save_checkpoint
from marlab.lab.stats import grouped_resamples, percentiles

SEEDS = "0..2"
RUNS, STEPS = 12, 600
SCENARIOS = ("GRIM(1)+2NH", "TFT+2NH", "WAIT(3)+2NH", "SWITCH(4)+2NH", "3EXPL", "3KEEP(0.5)")
"""Named before anything was run."""
START_SEED = 20_261_116
"""Starts that no training uses."""
BASE = {"learn.learning_rate": 1e-3, "learn.warm_updates": 200, "learn.hindsight": True, "pipeline.rows": 40_000,
        "pipeline.goal_epochs": 6}  # fmt: skip
"""What hop_quick was when the ladder was first climbed; it has learnt from the ladder since."""
RUNGS: dict[str, dict[str, Any]] = {
    "base": {},
    "guests-off": {"guests.share": 0.0},
    "cold": {"learn.warm_updates": 0, "load_data": False, "load_moa": False},
    "beliefs-off": {"variant": "direct-om"},
    "across-off": {"variant": "wo-inter"},
    "within-off": {"variant": "wo-intra"},
    "hindsight-off": {"learn.hindsight": False},
    "outcomes-4": {"plan.search.outcomes": 4},
    "outcomes-8": {"plan.search.outcomes": 8},
    "paths-on": {"paths": True},
    "mcts-random": {"variant": "mcts-random"},
    "mcts-self": {"variant": "mcts-self"},
    "codes-8": {"variant": "hopplus-mcts"},
    "codes-8-hindsight-off": {"variant": "hopplus-mcts", "learn.hindsight": False},
    "codes-2": {"variant": "hopplus-mcts", "prototypes": 2},
    "world-structured": {"variant": "hopplus-mcts-wm", "world": "structured"},
    "world-dense": {"variant": "hopplus-mcts-wm", "world": "dense"},
}
"""Rung -> what it changes, the most telling first; paths are off in the base on 4x4. Rungs with codes and with world
models are read against codes-8. `prototypes` and `world` name the models that a training begins with."""


def main() -> None:
    arguments = parse()
    torch.set_num_threads(1)
    until = time.monotonic() + arguments.seconds
    if arguments.train_only:
        arguments.reserve = 0.0
    rungs = arguments.cells or list(RUNGS)
    part, parts = map(int, arguments.part.split("/"))
    if arguments.estimate:
        print(estimate(arguments, len(rungs)))
        return
    arguments.output_dir.mkdir(parents=True, exist_ok=True)
    if arguments.table:
        print(table(arguments.output_dir))
        return
    mine = rungs[part::parts]
    for rung in mine:
        if arguments.prepare:
            prepare(rung, settings(rung, arguments), arguments, until)
        elif not (arguments.output_dir / f"{rung}.pt").exists() and time.monotonic() < until - arguments.reserve - 20:
            climb(rung, arguments, until - arguments.reserve)
    if not (arguments.prepare or arguments.train_only):
        measure([rung for rung in mine if (arguments.output_dir / f"{rung}.pt").exists()], arguments)


def climb(rung: str, arguments: argparse.Namespace, until: float) -> None:
    """Train a rung."""
    config = settings(rung, arguments)
    prepare(rung, config, arguments, until)
    kept = train(config, arguments.output_dir / f"{rung}.pt", arguments, until)
    (arguments.output_dir / f"{rung}.json").write_text(json.dumps(kept))
    print(f"{rung}: {kept['iterations']} iterations in {kept['seconds']:.0f} s, reward {kept['reward']}", flush=True)


def measure(rungs: list[str], arguments: argparse.Namespace) -> None:
    """Score the rungs that have no scores yet, all in one batch."""
    agents: dict[str, Agent] = {}
    for rung in rungs:
        file = arguments.output_dir / f"{rung}.pt"
        if "scores" in read(file.with_suffix(".json")):
            continue
        minds = agents_of(load_checkpoint(file, KIND).state["agents"], str(file))
        make = Planners(minds, {}).make
        agents[rung] = Agent(rung, minds.config.variant, make, make, minds.seeds, identity=rung)
    if not agents:
        return
    config = game_config(arguments.game)
    game = make_game(config, torch.Generator().manual_seed(START_SEED), device=choose_device(arguments.device))
    began = time.monotonic()
    found = score(list(agents.values()), [team(n) for n in SCENARIOS], game, arguments)
    for rung, scores in zip(agents, found):
        record = arguments.output_dir / f"{rung}.json"
        kept = read(record)
        record.write_text(json.dumps({**kept, "scores": scores}))
        print(f"{rung}: { {name: round(one['mean'], 2) for name, one in scores.items()} }", flush=True)
    print(f"scored in {time.monotonic() - began:.0f} s", flush=True)


def settings(rung: str, arguments: argparse.Namespace) -> HopTrainConfig:
    """The training of a rung."""
    fields = to_dict(HopTrainConfig())
    _merge(fields, tomllib.loads((TRAININGS / "hop_quick.toml").read_text()))
    asked = dict(text.split("=", 1) for text in arguments.set)
    changes = {
        **BASE,
        **RUNGS[rung],
        **{name: json.loads(value) for name, value in asked.items()},
    }
    world = changes.pop("world", None)
    changes.pop("prototypes", None)
    for name, value in changes.items():
        *path, last = name.split(".")
        node = fields
        for word in path:
            node = node[word]
        node[last] = value
    wants_data, wants_models = (fields.pop(name, None) is not False for name in ("load_data", "load_moa"))
    config = from_dict(HopTrainConfig, fields, f"the rung {rung}")
    seeds, iterations = ("0..1", 2) if arguments.tiny else (arguments.seeds, arguments.iterations)
    config = replace(
        config, seeds=seeds, device=arguments.device, record=arguments.device != "cpu" and not arguments.tiny,
        load_data=Path("memory") if wants_data else None, total_steps=iterations * config.num_envs * config.steps,
    )  # fmt: skip
    if arguments.tiny:
        config = replace(config, num_envs=16, total_steps=256, learn=replace(config.learn, warm_updates=5, updates=2))
    config = replace(config, game=game_config(arguments.game))
    if world is not None:
        config = replace(config, load_wm=arguments.output_dir / f"world_{world}.pt", record=False)
    if config.parts.coplayers == "learned" and wants_models:
        config = replace(config, load_moa=arguments.output_dir / f"{models_of(rung, config)}.pt")
    return config


# --- models that trainings begin with ---------------------------------------------------------------------------------


def models_of(rung: str, config: HopTrainConfig) -> str:
    """The name of the pretrained models of others of a rung."""
    source = SOURCES[config.parts.goals][0]
    count = RUNGS.get(rung, {}).get("prototypes", 8)
    return f"others_{source}" + (f"_{count}" if source == "history" else "") + ("_ways" if config.paths else "")


def prepare(rung: str, config: HopTrainConfig, arguments: argparse.Namespace, until: float) -> None:
    """Make what a rung's training begins with, unless somebody did."""
    world, models = config.load_wm, config.load_moa
    if models is not None and not models.exists():
        data, source = dataset(config, arguments), SOURCES[config.parts.goals][0]
        answers.PROTOTYPES = RUNGS.get(rung, {}).get("prototypes", 8)
        epochs = 5 if arguments.tiny else config.pipeline.goal_epochs
        trainer, _ = pretrain(
            arguments, data, source, "joint", 0, until, epochs=epochs, hidden=config.hidden, paths=config.paths
        )
        keep_models(models, trainer)
        print(f"{models.name} made", flush=True)
    if world is not None and not world.exists():
        kind = RUNGS[rung]["world"]
        world_model(arguments, dataset(config, arguments), kind, world, until)
        print(f"{world.name} made", flush=True)


DATA: list[Dataset] = []


def dataset(config: HopTrainConfig, arguments: argparse.Namespace) -> Dataset:
    """Offline data, played once."""
    if not DATA:
        rows = 4000 if arguments.tiny else config.pipeline.rows
        DATA.append(in_memory(HuntCollectConfig(game=config.game, rows=rows, maps=config.maps)))
    return DATA[0]


def train(config: HopTrainConfig, file: Path, arguments: argparse.Namespace, until: float) -> dict[str, Any]:
    """Train until the end or until the time is up, and save the agents."""
    began = time.monotonic()
    if config.load_data is not None:
        data = dataset(config, arguments)
        training.load_dataset = lambda path, game=None: data  # type: ignore[assignment]
    trainer = training.HopTrainer(config)
    rewards: list[float] = []
    while trainer.step < trainer.total and time.monotonic() < until - 40:
        row = trainer.iterate()
        rewards += [row["episode/reward"]] if "episode/reward" in row else []
    save_checkpoint(file, KIND, trainer.step, {"agents": trainer.agents()})
    return {
        "iterations": trainer.step, "of": trainer.total, "seconds": time.monotonic() - began,
        "reward": round(float(np.mean(rewards[-5:])), 3) if rewards else None, "rewards": rewards,
    }  # fmt: skip


def score(
    agents: list[Agent], scenarios: list[Scenario], game: Any, arguments: argparse.Namespace
) -> list[dict[str, Any]]:  # fmt: skip
    """All scenarios of all agents in one batch: what the focal player earns in each run."""
    seeds = max(len(agent.seeds) for agent in agents)
    runs, steps = (4 * seeds, 60) if arguments.tiny else (arguments.runs, arguments.steps)
    plan = seat_all(game, [Cell(agent, scenario) for agent in agents for scenario in scenarios], runs, {})
    chance = torch.Generator(device=game.device).manual_seed(START_SEED)
    stream = play_stream(game, plan, Starts(game, runs, START_SEED), steps, chance)
    found = scores_of(plan, stream, steps, steps // 2)
    return [
        {
            scenario.name: {"mean": one.mean, "per_run": one.per_run.tolist(), "seeds": one.seeds.tolist(),
                            "by_episode": one.by_episode.tolist()}
            for scenario, one in zip(scenarios, found[k * len(scenarios) :])
        }
        for k in range(len(agents))
    ]  # fmt: skip


def table(folder: Path) -> str:
    """What every rung earns in every scenario, and its paired differences; training seeds are resampled first."""
    found = {path.stem: read(path) for path in sorted(folder.glob("*.json"))}
    scored = {name: one["scores"] for name, one in found.items() if "scores" in one}
    lines = [f"| {' | '.join(['rung', 'self-play', *SCENARIOS, 'to base', 'to codes-8'])} |", "|---" * 10 + "|"]
    for name, scores in scored.items():
        cells = [_measured(scores[s]["per_run"], scores[s]["seeds"]) for s in SCENARIOS]
        against = [_difference(scores, scored[b]) if b in scored and b != name else "" for b in ("base", "codes-8")]
        lines.append(f"| {' | '.join([name, str(found[name]['reward']), *cells, *against])} |")
    return "\n".join(lines)


def _measured(per_run: list[float], seeds: list[int]) -> str:
    values = np.array(per_run)
    m = percentiles(float(values.mean()), values[grouped_resamples(np.array(seeds))].mean(1))
    return f"{m.value:.2f} ± {(m.high - m.low) / 2:.2f}"


def _difference(one: dict[str, Any], other: dict[str, Any]) -> str:
    """Mean over scenarios of run by run differences (runs begin alike), with its interval."""
    drawn = []
    for s in SCENARIOS:
        gap = np.array(one[s]["per_run"]) - np.array(other[s]["per_run"])
        drawn.append(gap[grouped_resamples(np.array(one[s]["seeds"]))].mean(1))
    value = np.mean([np.mean(one[s]["per_run"]) - np.mean(other[s]["per_run"]) for s in SCENARIOS])
    m = percentiles(float(value), np.mean(drawn, axis=0))
    return f"{m.value:+.2f} [{m.low:+.2f}, {m.high:+.2f}]"


def estimate(arguments: argparse.Namespace, rungs: int) -> str:
    """Seconds of all rungs, from one iteration and some steps of play here."""
    trainer = training.HopTrainer(settings("cold", arguments))
    trainer.iterate()
    began = time.monotonic()
    trainer.iterate()
    each = time.monotonic() - began
    training_s = rungs * each * arguments.iterations
    play_s = rungs * each / trainer.config.steps * arguments.steps / 2
    alone = f"about {training_s / 60:.0f} minutes alone, scoring them about {play_s / 60:.0f}"
    return f"{each:.2f} s an iteration: {rungs} trainings of {arguments.iterations} iterations take {alone}"


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else {}


def _merge(into: dict[str, Any], changes: dict[str, Any]) -> None:
    for name, value in changes.items():
        if isinstance(value, dict):
            _merge(into[name], value)
        else:
            into[name] = value


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", nargs="*", help="only these rungs")
    parser.add_argument("--part", default="0/1", help="which of the rungs, such as 1/4")
    parser.add_argument("--set", nargs="*", default=[], help="settings of all rungs, such as plan.trees=5 paths=true")
    parser.add_argument("--game", default="msh_4x4")
    parser.add_argument("--train-only", action="store_true", help="leave the scoring to another script")
    parser.add_argument("--seeds", default=SEEDS)
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop in time for this")
    parser.add_argument("--reserve", type=float, default=150.0, help="seconds of these that are kept for the scoring")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--estimate", action="store_true")
    parser.add_argument("--prepare", action="store_true", help="make the models that the rungs begin with, and end")
    parser.add_argument("--table", action="store_true", help="print what was measured, with intervals")
    parser.add_argument("--tiny", action="store_true", help="to see that it runs")
    parser.add_argument("--output-dir", type=Path, default=Path("ladder"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
