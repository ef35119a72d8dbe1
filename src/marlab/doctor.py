"""`marlab doctor`: what is installed, what it computes on, and whether each world works here.

Exit code 0 where all that the core needs works (a missing extra, GPU or compiler is a note), 1 where a check fails.
"""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from marlab.lab.extras import EXTRAS
from marlab.lab.flags import parse
from marlab.lab.progress import stage

LIBRARIES = ("torch", "numpy", "scipy", "pyarrow", "gymnasium", "pettingzoo")
ENOUGH_DISK_GB = 2.0


@dataclass(frozen=True)
class DoctorConfig:
    """Check this installation: versions, device, compiler, extras, folder of runs, and a short test of each world."""

    root: Path = Path("runs")
    """The folder of runs that must be writable."""


@dataclass(frozen=True)
class Check:
    name: str
    state: str  # ok, note, FAILED
    said: str


def main(argv: Sequence[str]) -> int:
    """The command `marlab doctor`."""
    config = parse(DoctorConfig, argv, prog="marlab doctor")
    checks = [
        _versions(), _device(), _compiler(), *map(_extra, EXTRAS), _runs(config.root), _disk(config.root),
        *(_tried(name, test) for name, test in (("fish", _fish), ("hunt", _hunt), ("market", _market))),
    ]  # fmt: skip
    for check in checks:
        print(f"{check.state:<8}{check.name:<14}{check.said}")
    failed = [check.name for check in checks if check.state == "FAILED"]
    print(f"Not everything works: {', '.join(failed)}." if failed else "All that the core needs works.")
    return 1 if failed else 0


def _versions() -> Check:
    from marlab import __version__

    found = []
    for name in LIBRARIES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            return Check("versions", "FAILED", f"{name} is not installed, but the core needs it")
    system = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    return Check("versions", "ok", f"marlab {__version__}, {system}, {', '.join(found)}")


def _device() -> Check:
    import torch

    cores = f"{os.cpu_count()} cores"
    if not torch.cuda.is_available():
        return Check("device", "note", f"{cores}, no GPU that torch can use: large trainings take hours")
    return Check("device", "ok", f"{cores}, {torch.cuda.get_device_name(0)}")


def _compiler() -> Check:
    from marlab.hunt.planner.native import SOURCE
    from marlab.lab.native import library_of

    found = library_of(SOURCE)
    if isinstance(found, str):
        return Check("compiler", "note", f"{found}: everything works without, single decisions are slower")
    return Check("compiler", "ok", "C code of the planners is built and loaded")


def _extra(name: str) -> Check:
    missing = [library for library in EXTRAS[name] if find_spec(library) is None]
    if missing:
        return Check(f"extra {name}", "note", f"{' and '.join(missing)} not installed: pip install 'marlab[{name}]'")
    return Check(f"extra {name}", "ok", ", ".join(f"{library} {version(library)}" for library in EXTRAS[name]))


def _runs(root: Path) -> Check:
    folder = next(place for place in (root.absolute(), *root.absolute().parents) if place.exists())
    try:
        with tempfile.NamedTemporaryFile(dir=folder):
            return Check("runs", "ok", f"{root.absolute()} can be written")
    except OSError as error:
        return Check("runs", "FAILED", f"{folder} cannot be written: {error.strerror}")


def _disk(root: Path) -> Check:
    folder = next(place for place in (root.absolute(), *root.absolute().parents) if place.exists())
    free = shutil.disk_usage(folder).free / 1e9
    return Check("disk", "ok" if free >= ENOUGH_DISK_GB else "note", f"{free:.1f} GB free")


def _tried(name: str, test: Callable[[], str]) -> Check:
    began = time.monotonic()
    try:
        with stage(f"testing {name}"):
            said = test()
    except Exception as error:  # whatever is wrong with a world is what the command is there to say
        return Check(name, "FAILED", f"{type(error).__name__}: {error}".partition("\n")[0])
    return Check(name, "ok", f"{said} ({time.monotonic() - began:.1f} s)")


def _fish() -> str:
    """The shipped shoal keeps most fish alive for a hundred steps of one arena."""
    import marlab.fish as fish

    shoal = fish.load("best")
    env, policy = shoal.env(num_fish=25), shoal.policy()
    observation, _ = env.reset(seed=0)
    for _ in range(100):
        observation, _, _, _, info = env.step(policy(observation))
    alive = float(info["survival_rate"])
    assert alive > 0.5, f"only {alive:.0%} of a shipped shoal lived for 100 steps"
    return f"{alive:.0%} of the shipped shoal live after 100 steps"


def _hunt() -> str:
    """The shipped planner finishes one game among three copies of itself."""
    import torch

    import marlab.hunt as hunt
    from marlab.hunt.players.rollout import play

    trained = hunt.load("hop_4x4")
    generator = torch.Generator().manual_seed(0)
    game = hunt.make_game(trained.game, generator)
    reward = float(play(game, trained.policy(game), 1, generator).reward.mean())
    assert reward > 0, "shipped planners caught nothing among themselves"
    return f"shipped planners earn {reward:.2f} of 3.0 in one game"


def _market() -> str:
    """Rule W sells in a small vector market, which needs no simulator."""
    import numpy as np
    import torch

    from marlab.market.vector.builtin import play
    from marlab.market.vector.clones import load
    from marlab.market.vector.generate import generate
    from marlab.market.vector.market import Market
    from marlab.market.vector.setup import make_setup

    market = Market(make_setup(generate(2, np.random.default_rng(0), levels=(2, 2), factories=(3, 3), days=(5, 5))))
    who = torch.zeros_like(market.setup.lines, dtype=torch.int64)
    play(market, load().seated(market, ["LitaAgentHRL"], who, torch.Generator().manual_seed(0)), days=2)
    days = int(market.day.max())
    assert days == 2, f"a vector market came to day {days} of 2"
    return "rule W trades in a vector market for two days"
