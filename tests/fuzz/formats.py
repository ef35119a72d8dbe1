"""Every file format and what reads it: a folder that the format's own writers made, and calls or command lines."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from marlab.cli import main
from tests.fuzz import stage
from tests.fuzz.damage import damaged
from tests.fuzz.guard import PIPE, Case

HEALTHY = "healthy"
"""The name, without its ending, of the one file of a folder that is made for a single reader."""
TRAIN = "--device cpu --l2-epochs 1 --l3-epochs 1 --l4-epochs 1 --output-dir out"
OVER_RUNS = """\
runs --sort survival
runs --find damaged
runs --compare a b
runs --abandon b --reason enough
compare a b
note a
note --all
report
report a --single-file
draw a
draw p
fish train --preset fish.toml --name b --resume
fish eval a --output-dir e
fish watch a --film w.gif
fish probe runs/fish/b --output-dir e
hunt train --preset ppo.toml --name p --resume
hunt diagnose p --output-dir d --no-figures
hunt eval runs/hunt/p --game msh_4x4
hunt watch p
hunt pretrain vae p
market samples runs/fish/a
market train --data runs/fish/a"""


@dataclass(frozen=True)
class Format:
    """A folder and what reads the files in it."""

    source: Callable[[], Path]
    reads: tuple[str | Callable[[], Any], ...]
    """Command lines, or functions that are called in a copy of the folder."""

    def files(self) -> list[str]:
        return [name for name in stage.files(self.source()) if "/tb/" not in name]

    def case(self, name: str, number: int, file: str, content: bytes | None, rng: random.Random) -> Case:
        read = rng.choice(self.reads)
        call = partial(main, read.split()) if isinstance(read, str) else read
        told = f"{read if isinstance(read, str) else name} of a damaged {file}"
        return Case(name, number, told, call, self.source(), {file: content})


def fault(file: str, data: bytes, rng: random.Random) -> tuple[str, bytes | None]:
    """A name and content for the guard: the damaged file, or nothing, a folder or a pipe in its place."""
    fate = rng.random()
    if fate < 0.03:
        return rng.choice(((file, None), (f"{file}/", None), (f"{file}{PIPE}", None)))
    return file, damaged(file, data, rng)


def _file(ending: str, write: Callable[[Path], Any]) -> Callable[[], Path]:
    """A folder with one file."""
    return stage.made(lambda folder: write(folder / f"{HEALTHY}.{ending}"))


def _one(ending: str, write: Callable[[Path], Any], read: Callable[[Path], Any]) -> Format:
    return Format(_file(ending, write), (lambda: read(Path(f"{HEALTHY}.{ending}")),))


# --- weights --------------------------------------------------------------------------------------------------------


def _fish(path: Path) -> None:
    from marlab.fish.training.networks import load_policy

    net = load_policy(path)
    net.net.logits(torch.zeros(2, net.sea.observation_size))


def _players(load: Callable[[Path], Any], path: Path) -> None:
    from marlab.hunt.game.build import make_game

    agents = load(path)
    agents.policy(make_game(agents.game, torch.Generator(), maps=1))


def _weights() -> dict[str, Format]:
    from marlab.hunt.others.models import load_goal_models
    from marlab.hunt.planner.agent import load_hop
    from marlab.hunt.ppo.network import load_agents
    from marlab.hunt.world_model.model import load_world_model
    from marlab.market.networks.weights import load_network

    readers: dict[str, Callable[[Path], Any]] = {
        "fish": _fish, "policy": _fish, "ppo": partial(_players, load_agents), "planner": partial(_players, load_hop),
        "goals": load_goal_models, "world": load_world_model,
    }  # fmt: skip
    for layer in ("l2", "l3", "l4"):
        readers[layer] = lambda path, layer=layer: load_network(path, f"market/{layer}")  # type: ignore[misc]
    return {kind: _one("pt", partial(_write_weights, kind), read) for kind, read in readers.items()}


def _write_weights(kind: str, path: Path) -> None:
    path.write_bytes(stage.weights(kind))


# --- arrays and tables ----------------------------------------------------------------------------------------------


def _arrays() -> dict[str, Format]:
    from marlab.fish.measure.pages import tank, tank_parts
    from marlab.fish.measure.pathfile import read_paths
    from marlab.market.fidelity import vector
    from marlab.market.networks import around, forward
    from marlab.market.samples.npz import load_l4_samples, load_samples
    from marlab.market.vector import configs
    from marlab.market.vector.clones import pack
    from tests.fish.cases import some_paths
    from tests.market.clone_cases import small_pack

    def paths(path: Path) -> None:
        read = read_paths(path)
        tank(read)
        for part in tank_parts(read).values():
            part()

    def few_configs(path: Path) -> None:
        from marlab.market.vector.generate import generate

        configs.save(path, generate(3, np.random.default_rng(0), levels=(2, 3), factories=(2, 3), days=(5, 5)))

    def network(path: Path) -> None:
        from marlab.market.learn.trainers import new_executor
        from tests.market.learn_cases import SMALL

        forward.save(path, forward.plain(forward.L3_KIND, new_executor(SMALL, 40)))

    def samples() -> None:
        load_samples(".")
        load_l4_samples(".")

    return {
        "paths": _one("npz", lambda path: some_paths().write(path), paths),
        "configs": _one("npz", few_configs, configs.load),
        "clones": _one("npz", lambda path: path.write_bytes(small_pack().to_bytes()), pack.load),
        "around": _one("npz", lambda path: around.save(path, around.untrained()), around.load),
        "network": _one("npz", network, lambda path: forward.load(path, forward.L3_KIND)),
        "scores": _one("npz", lambda path: np.savez(path, scores=np.ones((2, 3))), lambda p: vector.known(p, (2, 3))),
        "guide": Format(stage.guide_samples, (samples,)),
    }


# --- all ------------------------------------------------------------------------------------------------------------


def _reasons() -> None:
    from marlab.market.replay.world import _lines

    _lines(Path(f"{HEALTHY}.jsonl.gz"))


def _seats() -> None:
    from marlab.market.replay.tournament import agents_of, read_seats

    agents_of(read_seats(Path()))


def _write_seats(folder: Path) -> None:
    from marlab.market.arena.report import BOUNDS, write_seats

    plain = {"agent": "A", "config": "c", "position": "first", "score": 1.0, "world": "w"}
    write_seats([{**plain, **dict.fromkeys(BOUNDS, 0.5)}] * 3, folder / "seats.parquet")


def _recorded() -> None:
    from marlab.market.vector.replay import read_folder

    read_folder(Path("recorded"))


def formats() -> dict[str, Format]:
    """By name; every format that a command reads from a folder of somebody else."""
    lines = "".join(json.dumps({"kind": "respond", "day": day, "reason": "x"}) + "\n" for day in range(5)).encode()
    logs = (
        "market samples logs --output-dir out --engine serial", "market samples logs --agent-name all --output-dir out",
    )  # fmt: skip
    return {
        "runs": Format(stage.runs, tuple(OVER_RUNS.splitlines())),
        **_weights(),
        **_arrays(),
        "hunt data": Format(stage.hunt_data, (
            "hunt pretrain vae data --epochs 2 --vae-epochs 1 --output-dir out --no-overfit-check",
            "hunt pretrain world data --rows 0 --epochs 1 --output-dir out",
            "hunt diagnose data --output-dir out --no-figures",
        )),
        "logs": Format(stage.market_logs, (*logs, "market export logs --output-dir out")),
        "recorded": Format(stage.recorded, (_recorded,)),
        "trackers": Format(stage.trackers, logs),
        "samples": Format(stage.samples, (
            f"market train samples {TRAIN}", f"market train samples --phases l3,l4 --l3-goals v2 {TRAIN}",
        )),
        "starts": Format(stage.starts, (
            "fish starts --check starts.json", "fish starts --source eval_multi_history.jsonl --output-dir out",
            "fish starts --source starts.json --output-dir out",
            "fish train --preset quickstart --num-envs 2 --tail-seed-stage-spec 2:starts.json|type=ne --output-dir out",
        )),
        "reasons": Format(_file("jsonl.gz", lambda path: path.write_bytes(gzip.compress(lines))), (_reasons,)),
        "seats": Format(stage.made(_write_seats), (_seats,)),
    }  # fmt: skip
