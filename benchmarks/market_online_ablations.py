"""What the parts of online learning are worth: trainings that differ in one setting, from the same bad start.

    python benchmarks/market_online_ablations.py train FOLDER --generations 1 --workers 2
    python benchmarks/market_online_ablations.py table FOLDER

Every variant is a process of its own, with one thread, that learns for so many generations in worlds of shipped clones,
built-in agents and the rule. Then all of them and the rule play the same seats of worlds that nobody learnt from. What
is there is kept: the same command again trains what is missing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from marlab.market.networks import around as files
from marlab.market.online.settings import OnlineConfig
from marlab.market.online.steer import HELD_OUT, Outcome, fare
from marlab.market.online.trainer import OnlineTrainer

SHIPPED = Path(__file__).parents[1] / "src" / "marlab" / "market" / "shipped"
CLONES = ("HorizonAwareAgent", "TakaLinkAgent", "SBD", "AS0", "Std", "PenguinAgent", "XenoSotaAgent", "Rohn", "COW")
BASE = OnlineConfig(
    algo="mappo", start="weak", bonus=0.2, share=0.0, gamma=0.8, worlds=192, learners=4, shapes=("3x4",), days=(16, 24),
    generations=1, generation_days=14, rollout_days=2, learning_rate=3e-3, target_kl=0.05, batch_size=4096, epochs=4,
    past_selves=0, clones=SHIPPED / "clones.npz", steer_every=0, steer_worlds=128, steer_days=14, device="cpu",
    opponents=("rule", "RandomStdAgent", "SyncRandomStdAgent", *CLONES),
)  # fmt: skip
VARIANTS: dict[str, dict[str, Any]] = {
    "base": {},
    "seed 1": {"seed": 1},
    "ippo": {"algo": "ippo"},
    "beliefs": {"observer": SHIPPED / "observer.npz"},
    "a network per level": {"per_level": True},
    "outright": {"outright": True},
    "no clones": {"opponents": ("rule", "RandomStdAgent", "SyncRandomStdAgent")},
    "stage A alone": {"algo": "ppo", "start": "rule"},
}
"""What differs from the base: seed 1 says how much is chance; stage A only reorders the rule's threads."""
RULE, START = "rule", "start"


def file_of(folder: Path, name: str) -> Path:
    """The outcome of a variant."""
    return folder / f"{name.replace(' ', '_')}.npz"


def keep(path: Path, outcome: Outcome, told: dict[str, float]) -> None:
    """Write an outcome, seat by seat, and what is to be told about its training."""
    seats = {name: value.numpy() for name, value in outcome.state_dict().items()}
    np.savez(path, **seats, **{f"told {name}": value for name, value in told.items()})


def learn(folder: Path, name: str, generations: int, device: torch.device) -> None:
    """One variant."""
    torch.set_num_threads(1)
    judge = OnlineTrainer(replace(BASE, device=str(device)), device)  # the same seats and opponents for all
    if name == RULE:
        keep(file_of(folder, name), fare(judge.config, judge.pool, None, device, which=HELD_OUT), {})
        return
    if name == START:
        keep(file_of(folder, name), fare(judge.config, judge.pool, judge.net, device, which=HELD_OUT), {})
        return
    trainer = OnlineTrainer(replace(BASE, device=str(device), generations=generations, **VARIANTS[name]), device)
    began = time.perf_counter()
    while trainer.step < trainer.total:
        told = trainer.iterate()
        seconds = time.perf_counter() - began
        print(f"{name}: generation {trainer.step}, {told['reward/day']:.4f} a day, {seconds:.0f} s", flush=True)
        files.save(folder / f"{name.replace(' ', '_')}_net.npz", trainer.net.plain())
    told = {"generations": trainer.step, "seconds": time.perf_counter() - began}
    keep(file_of(folder, name), fare(judge.config, judge.pool, trainer.net, device, trainer._plays, HELD_OUT), told)


def train(flags: argparse.Namespace) -> None:
    """All variants that are missing, so many at a time."""
    flags.folder.mkdir(parents=True, exist_ok=True)
    waiting = [
        name for name in (RULE, START, *(flags.variants or VARIANTS)) if not file_of(flags.folder, name).exists()
    ]
    running: list[subprocess.Popen[bytes]] = []
    while waiting or running:
        running = [process for process in running if process.poll() is None]
        while waiting and len(running) < flags.workers:
            words = ["one", str(flags.folder), "--variants", waiting.pop(0)]
            more = ["--generations", str(flags.generations), "--device", flags.device]
            running.append(subprocess.Popen([sys.executable, __file__, *words, *more]))
        time.sleep(0.5)


def table(folder: Path) -> None:
    """Each variant minus the rule and minus the base, seat by seat, Student's 95 %."""
    from marlab.lab.stats import mean_interval

    found = {path.stem.replace("_", " "): np.load(path) for path in sorted(folder.glob("*.npz"))}
    scores = {name: data["score"].astype(float) for name, data in found.items() if "score" in data.files}
    order = [name for name in (START, *VARIANTS) if name in scores]
    first = found[RULE]["first"]
    print("| variant | generations | minus rule | first level | middle level | minus base |\n|---|---|---|---|---|---|")

    def cell(values: Any) -> str:
        mean, low, high = mean_interval(values.tolist())
        return f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"

    for name in order:
        gain = scores[name] - scores[RULE]
        done = int(found[name]["told generations"]) if "told generations" in found[name].files else ""
        beside = "" if name == "base" or "base" not in scores else cell(scores[name] - scores["base"])
        print(f"| {name} | {done} | {cell(gain)} | {cell(gain[first])} | {cell(gain[~first])} | {beside} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("train", "one", "table"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--variants", nargs="*", help=", ".join(VARIANTS))
    parser.add_argument("--generations", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    flags = parser.parse_args()
    if flags.what == "table":
        table(flags.folder)
    elif flags.what == "train":
        train(flags)
    else:
        learn(flags.folder, flags.variants[0], flags.generations, torch.device(flags.device))


if __name__ == "__main__":
    main()
