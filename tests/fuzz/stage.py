"""Healthy files to damage: small runs, weights and data sets of every kind, each made once without any training."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from marlab.hunt.data.collect import collect
from marlab.hunt.data.config import HuntCollectConfig
from marlab.lab.config import changed
from marlab.lab.runs.checkpoint import CheckpointStore, save_checkpoint
from marlab.lab.runs.run import Run, RunOptions
from tests.fish.cases import SMALL as FISH
from tests.hunt.hop_cases import small_mind
from tests.hunt.ppo_cases import TINY
from tests.hunt.ppo_cases import small as small_ppo


@cache
def _home() -> Path:
    home = Path(tempfile.mkdtemp(prefix="fuzz-stage-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return home


def made(write: Callable[[Path], Any]) -> Callable[[], Path]:
    """A folder that `write` fills when it is first asked for."""

    @cache
    def folder() -> Path:
        place = Path(tempfile.mkdtemp(dir=_home()))
        write(place)
        return place

    return folder


def preset(config: Any) -> bytes:
    """The settings of a config as a preset file."""
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in changed(config).items()).encode()


# --- runs ----------------------------------------------------------------------------------------------------------


@cache
def runs() -> Path:
    """A folder with runs/fish/a, runs/fish/b and runs/hunt/p, and presets that go on with the last two."""
    from marlab.fish.training.networks import KIND, PATTERN
    from marlab.fish.training.train import FishTrainer
    from marlab.hunt.ppo.network import KIND as PPO_KIND
    from marlab.hunt.ppo.network import PATTERN as PPO_PATTERN
    from marlab.hunt.ppo.train import PPOTrainer

    folder = _home() / "runs"
    fish, ppo = FishTrainer(FISH).state_dict(), PPOTrainer(small_ppo()).state_dict()
    for name, world, config, state, kind, pattern in (
        ("a", "fish", FISH, fish, KIND, PATTERN),
        ("b", "fish", FISH, fish, KIND, PATTERN),
        ("p", "hunt", small_ppo(), ppo, PPO_KIND, PPO_PATTERN),
    ):
        path = folder / "runs" / world / name
        with Run.open(world, config, RunOptions(output_dir=path, goal="to be damaged", tags=("t",))) as run:
            metrics = run.metrics()
            for step in range(1, 6):
                metrics.log(step, {"survival/mean": 0.1 * step, "episode/reward": 1.0, "ppo/policy_loss": 0.5 / step})
            store = CheckpointStore(run.checkpoints, kind, pattern)
            for step in (2, 4):
                store.save(step, {**state, "step": step}, score=float(step))
            run.add_stage("phase 1", lr=3e-4)
            run.add_results({"survival": {"value": 0.9, "low": 0.8, "high": 1.0, "unit": "share"}, "deaths": 4})
            run.log("a line")
            if name != "a":
                run._on_signal(15, None)
                run.leave()
    (folder / "fish.toml").write_bytes(preset(FISH))
    (folder / "ppo.toml").write_bytes(preset(small_ppo()))
    return folder


# --- weights -------------------------------------------------------------------------------------------------------


def _fish_checkpoint(path: Path) -> None:
    from marlab.fish.training.networks import KIND
    from marlab.fish.training.train import FishTrainer

    save_checkpoint(path, KIND, 3, FishTrainer(FISH).state_dict())


def _fish_policy(path: Path) -> None:
    from marlab.fish.training.networks import SHIPPED

    shutil.copyfile(SHIPPED / "best.pt", path)


def _ppo(path: Path) -> None:
    from marlab.hunt.ppo.network import KIND
    from marlab.hunt.ppo.train import PPOTrainer

    save_checkpoint(path, KIND, 3, PPOTrainer(small_ppo()).state_dict())


def _planner(path: Path) -> None:
    from marlab.hunt.planner.agent import KIND, agents_state

    mind = small_mind("hop")
    save_checkpoint(path, KIND, 1, {"agents": agents_state(TINY, mind.config, mind)})


def _goals(path: Path) -> None:
    from marlab.hunt.others.models import GoalModels, ModelSpec, save_goal_models

    save_goal_models(path, GoalModels(ModelSpec(TINY, "type", 4, 8, False)), None, 1)


def _world(path: Path) -> None:
    from marlab.hunt.world_model.model import make_model, save_world_model

    save_world_model(path, make_model("structured", TINY), step=1)


def _market(layer: str) -> Callable[[Path], None]:
    def save(path: Path) -> None:
        from marlab.market.learn.trainers import new_coordinator, new_executor, new_manager
        from marlab.market.networks.weights import save_network
        from marlab.market.samples.options import SampleOptions
        from tests.market.learn_cases import SMALL

        model: Any = {
            "l2": lambda: new_manager(SMALL, SampleOptions().sizes),
            "l3": lambda: new_executor(SMALL, 40),
            "l4": lambda: new_coordinator(SMALL, 40),
        }[layer]()
        save_network(path, model, 1)

    return save


MAKERS: dict[str, Callable[[Path], None]] = {
    "fish": _fish_checkpoint, "policy": _fish_policy, "ppo": _ppo, "planner": _planner, "goals": _goals,
    "world": _world, "l2": _market("l2"), "l3": _market("l3"), "l4": _market("l4"),
}  # fmt: skip


@cache
def weights(kind: str) -> bytes:
    path = _home() / f"{kind}.pt"
    MAKERS[kind](path)
    return path.read_bytes()


# --- data ----------------------------------------------------------------------------------------------------------


@cache
def hunt_data() -> Path:
    """A folder with `data`, the run of a small collection."""
    folder = _home() / "hunt"
    collect(HuntCollectConfig(TINY, rows=300), RunOptions(output_dir=folder / "data"), quiet=True)
    return folder


@cache
def market_logs() -> Path:
    """A folder with `logs`: two recorded worlds."""
    from tests.market.sample_tools import TINY as WORLD

    folder = _home() / "logs"
    (folder / "logs").mkdir(parents=True)
    for name in ("one", "two"):
        shutil.copyfile(WORLD, folder / "logs" / f"{name}.parquet")
    return folder


@cache
def recorded() -> Path:
    """A folder with `recorded`: three worlds with everything that a replay needs."""
    from tests.market.clone_cases import write_small_worlds

    folder = _home() / "recorded"
    write_small_worlds(folder / "recorded")
    return folder


@cache
def trackers() -> Path:
    """A folder with `logs`: two tracker files."""
    from marlab.market.logs.tracker import write_tracker
    from tests.market.tracker_example import example_log

    folder = _home() / "trackers"
    for world in ("world/1", "world/2"):
        write_tracker(example_log(world), folder / "logs")
    return folder


@cache
def samples() -> Path:
    """A folder with `samples`, a data set."""
    from marlab.lab.config import to_dict
    from marlab.market.samples.options import SampleOptions
    from tests.market.learn_cases import labelled_samples
    from tests.market.sample_tools import write_dataset

    folder = _home() / "samples"
    made = labelled_samples()
    about = {**to_dict(SampleOptions()), "experts": ["PenguinAgent"], "goal_backfill": "v2", "l2_model_path": None}
    write_dataset(folder / "samples", {"train": made, "val": made, "test": made}, about)
    return folder


@cache
def guide_samples() -> Path:
    """A folder with the guide's files of samples."""
    from marlab.market.samples.npz import save_l4_samples, save_samples
    from marlab.market.samples.records import L4Samples, MacroSamples, MicroSamples
    from tests.market.learn_cases import labelled_samples

    folder, few = _home() / "guide", labelled_samples()
    folder.mkdir()
    save_samples(MacroSamples.view(few), MicroSamples.view(few), folder)
    save_l4_samples(L4Samples.view(few), folder)
    return folder


@cache
def starts() -> Path:
    """A folder with a start file and a run's records of step-one deaths."""
    from marlab.fish.starts.files import SHIPPED

    folder = _home() / "starts"
    folder.mkdir()
    shutil.copyfile(SHIPPED / "best_ne.json", folder / "starts.json")
    record = {"iteration": 1, "predator_position": [0.0, 1.0], "predator_velocity": [1.0, 0.5], "fish_idx": 3}
    probe = {"iteration": 1, "step_one_deaths": [record], "worst_episodes": [record], "episodes": [record]}
    (folder / "eval_multi_history.jsonl").write_text("".join(json.dumps(probe) + "\n" for _ in range(3)))
    return folder


@cache
def everything() -> Path:
    """A folder with all of these; data that commands only read are links."""
    folder = _home() / "everything"
    shutil.copytree(runs(), folder)
    for place in (hunt_data(), market_logs(), recorded(), samples(), starts()):
        for path in place.iterdir():
            (folder / path.name).symlink_to(path)
    return folder


@cache
def files(folder: Path) -> tuple[str, ...]:
    """Names of all files below a folder."""
    return tuple(sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()))
