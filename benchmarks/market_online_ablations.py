"""What the parts of online learning are worth: trainings that differ in one setting, with equal budgets.

    python benchmarks/market_online_ablations.py train FOLDER --start weak --seeds 0 1 --workers 2
    python benchmarks/market_online_ablations.py train FOLDER --start rule --outright-start NETWORK --workers 2
    python benchmarks/market_online_ablations.py train FOLDER --start long --device cuda --worlds 2048 --seconds 250
    python benchmarks/market_online_ablations.py table FOLDER

Every variant is a process of its own, with one thread, that learns for so many generations in worlds of shipped clones,
built-in agents and the rule: from a start that was made bad, from the rule with as small a budget, or from the rule in
one long generation. Then all of them and the rule play the same seats of worlds that nobody learnt from. Free choices
cannot begin at the rule, so they begin at a network of theirs that has learnt to earn as much. What is there is kept:
the same command again trains what is missing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from marlab.lab.engine.tasks import EngineConfig
from marlab.market.networks import around as files
from marlab.market.online.ground_vector import Ground
from marlab.market.online.refit import Refits
from marlab.market.online.settings import OnlineConfig
from marlab.market.online.steer import HELD_OUT, Outcome, fare
from marlab.market.online.trainer import LEAST_RATE, OnlineTrainer

SHIPPED = Path(__file__).parents[1] / "src" / "marlab" / "market" / "shipped"
CLONES = ("HorizonAwareAgent", "TakaLinkAgent", "SBD", "AS0", "Std", "PenguinAgent", "XenoSotaAgent", "Rohn", "COW")
BUILTIN = ("rule", "RandomStdAgent", "SyncRandomStdAgent")
WEAK = OnlineConfig(
    algo="mappo", start="weak", bonus=0.2, share=0.0, gamma=0.8, worlds=192, learners=4, shapes=("3x4",), days=(16, 24),
    generations=2, generation_days=14, rollout_days=2, learning_rate=3e-3, target_kl=0.05, batch_size=4096, epochs=4,
    past_selves=0, clones=SHIPPED / "clones.npz", steer_every=0, steer_worlds=512, steer_days=14, device="cpu",
    opponents=(*BUILTIN, *CLONES),
)  # fmt: skip
FLOOR = replace(WEAK, start="rule", bonus=1.0, share=0.5, gamma=0.95)
LONG = replace(
    FLOOR, bonus=1.5, learners=3, shapes=("2x6", "3x4", "4x3"), days=(50, 60),
    rollout_days=1, learning_rate=1e-3, batch_size=16384, target_kl=0.04,
    worlds=2048, steer_worlds=1536, steer_days=50,
)  # fmt: skip
STARTS = {"weak": WEAK, "rule": FLOOR, "long": LONG}
VARIANTS: dict[str, dict[str, Any]] = {
    "base": {},
    "ippo": {"algo": "ippo"},
    "beliefs": {"observer": SHIPPED / "observer.npz"},
    "a network per level": {"per_level": True},
    "outright": {"outright": True},
    "no clones": {"opponents": BUILTIN},
    "clones fitted again": {"refits": 1},
    "stage A alone": {"algo": "ppo", "start": "rule"},
}
"""What differs from the base; stage A only reorders the rule's threads."""
RULE, START = "rule", "start"
TOLD = 10
"""Updates between two lines about a long generation."""
JUDGED = 0
"""The seed of the worlds that all are judged in."""


def file_of(folder: Path, name: str, seed: int) -> Path:
    """The outcome of a variant."""
    return folder / f"{name.replace(' ', '_')}.{seed}.npz"


def keep(path: Path, outcome: Outcome, told: dict[str, float]) -> None:
    """Write an outcome, seat by seat, and what is to be told about its training."""
    seats = {name: value.numpy() for name, value in outcome.state_dict().items()}
    np.savez(path, **seats, **{f"told {name}": value for name, value in told.items()})


def base_of(flags: argparse.Namespace) -> OnlineConfig:
    """The settings that all variants share."""
    asked = {
        "generations": flags.generations, "worlds": flags.worlds, "steer_worlds": flags.judged, "device": flags.device,
        "recorded": flags.recorded, "clones": flags.clones, "real_worlds": flags.real_worlds,
        "refit_units": flags.refit_units, "bonus": flags.bonus,
    }  # fmt: skip
    if flags.season is not None:
        asked |= {
            "days": (flags.season, flags.season + 10),
            "generation_days": flags.season,
            "steer_days": flags.season,
        }
    return replace(STARTS[flags.start], **{name: value for name, value in asked.items() if value is not None})


def learn(flags: argparse.Namespace, name: str, seed: int) -> None:
    """One variant."""
    torch.set_num_threads(1)
    device, base, began = torch.device(flags.device), base_of(flags), time.perf_counter()
    seats = replace(base, seed=JUDGED, clones=SHIPPED / "clones.npz")  # the same seats and opponents for all
    judge = OnlineTrainer(seats, device)
    path = file_of(flags.folder, name, seed)
    if name in (RULE, START):
        net = None if name == RULE else judge.net
        keep(path, fare(judge.config, judge.pool, net, device, which=HELD_OUT), {})
        return
    changed = VARIANTS[name] | ({"start": str(flags.outright_start)} if begins_at_network(flags, name) else {})
    trainer = OnlineTrainer(replace(base, seed=seed, **changed), device)
    if trainer.config.refits:
        run = flags.folder / f"{path.stem}_real"
        trainer.refits = Refits(
            trainer.config, run, EngineConfig("local", workers=1), stop=lambda: False, log=print, quiet=True
        )  # fmt: skip
        trainer.refits.cloned = trainer.pool.cloned
    updates = 0
    for done, told in (
        one_long(trainer, flags.updates, flags.seconds) if flags.start == "long" else generations(trainer)
    ):
        updates += done
        seconds = time.perf_counter() - began
        print(f"{name} {seed}: {updates} updates, {told['reward/day']:.4f} a day, {seconds:.0f} s", flush=True)
        files.save(flags.folder / f"{path.stem}_net.npz", trainer.net.plain())
    if flags.unjudged:
        return
    outcome = fare(judge.config, judge.pool, trainer.net, device, trainer._plays, HELD_OUT)
    keep(path, outcome, {"updates": updates, "seconds": seconds})
    print(f"{name} {seed}: judged, {time.perf_counter() - began:.0f} s", flush=True)


def begins_at_network(flags: argparse.Namespace, name: str) -> bool:
    """Whether this variant begins at a network of its own because it cannot begin at the rule."""
    return name == "outright" and flags.start != "weak" and flags.outright_start is not None


def generations(trainer: OnlineTrainer) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Updates and what is told of every generation."""
    while trainer.step < trainer.total:
        yield trainer.config.generation_days // trainer.config.rollout_days - 1, trainer.iterate()


def one_long(trainer: OnlineTrainer, updates: int, seconds: float) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """One generation that goes on for so many updates or seconds, as the trainer's own does; told every ten."""
    config, began = trainer.config, time.perf_counter()
    ground = Ground(config, trainer.net, trainer.pool, 0, trainer.device, plays=trainer._plays)
    others = ground.others() if config.algo == "mappo" else None
    learnt = trainer.orders if config.algo == "ppo" else trainer.rows
    before = ground.play(config.rollout_days)
    for update in range(1, updates + 1):
        after = ground.play(config.rollout_days)
        data, told = learnt(before, after, others)
        progress = max(update / updates, min(1.0, (time.perf_counter() - began) / seconds))
        rate = config.learning_rate * (1 - (1 - LEAST_RATE) * progress)
        told |= trainer.ppo.learn(data, rate, config.entropy_coef)
        before = after
        over = update == updates or time.perf_counter() - began > seconds
        if over or update % TOLD == 0:
            yield update % TOLD or TOLD, told
        if over:
            return


def train(flags: argparse.Namespace) -> None:
    """All variants that are missing, so many at a time."""
    flags.folder.mkdir(parents=True, exist_ok=True)
    names = list(flags.variants or VARIANTS)
    if flags.start != "weak" and flags.outright_start is None:
        names = [name for name in names if name != "outright"]
    jobs = [(RULE, JUDGED)] + ([(START, JUDGED)] if flags.start == "weak" else [])
    jobs += [(name, seed) for seed in flags.seeds for name in names]
    waiting = [job for job in jobs if not file_of(flags.folder, *job).exists()]
    running: list[subprocess.Popen[bytes]] = []
    while waiting or running:
        running = [process for process in running if process.poll() is None]
        while waiting and len(running) < flags.workers:
            name, seed = waiting.pop(0)
            words = [sys.executable, __file__, "one", *sys.argv[2:], "--variants", name, "--seeds", str(seed)]
            running.append(subprocess.Popen(words))
        time.sleep(0.5)


def table(folder: Path) -> None:
    """Each variant minus the rule and minus the base, seat by seat (mean of its seeds), Student's 95 %."""
    from marlab.lab.stats import mean_interval

    scores: dict[str, dict[int, Any]] = defaultdict(dict)
    updates: dict[str, list[int]] = defaultdict(list)
    for path in sorted(folder.glob("*.[0-9]*.npz")):
        name, seed = path.stem.rsplit(".", 1)
        if not seed.isdigit():
            continue
        name, found = name.replace("_", " "), np.load(path)
        scores[name][int(seed)], first = found["score"].astype(float), found["first"]
        if "told updates" in found.files:
            updates[name].append(int(found["told updates"]))
    rule, base = scores[RULE][JUDGED], scores.get("base", {})

    def cell(values: Any) -> str:
        mean, low, high = mean_interval(values.tolist())
        return f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"

    print("| variant | seeds, updates | minus rule | by seed | first level | middle level | minus base |")
    print("|---|---|---|---|---|---|---|")
    for name in [name for name in (START, *VARIANTS) if name in scores]:
        mine = scores[name]
        gain = np.mean([mine[seed] - rule for seed in sorted(mine)], 0)
        both = sorted(set(mine) & set(base))
        beside = "" if name in ("base", START) or not both else cell(np.mean([mine[s] - base[s] for s in both], 0))
        seeds = ", ".join(f"{(mine[seed] - rule).mean():+.3f}" for seed in sorted(mine))
        done = f"{len(mine)}, {'/'.join(map(str, sorted(set(updates[name]))))}" if updates[name] else ""
        print(f"| {name} | {done} | {cell(gain)} | {seeds} | {cell(gain[first])} | {cell(gain[~first])} | {beside} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("train", "one", "table"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--start", choices=STARTS, default="weak")
    parser.add_argument("--variants", nargs="*", help=", ".join(VARIANTS))
    parser.add_argument("--seeds", nargs="*", type=int, default=[0])
    parser.add_argument("--generations", type=int, default=None)
    parser.add_argument("--worlds", type=int, default=None, help="worlds of a generation")
    parser.add_argument("--judged", type=int, default=None, help="worlds of the comparison")
    parser.add_argument("--season", type=int, default=None, help="days of a generation and of the comparison")
    parser.add_argument("--unjudged", action="store_true", help="only train: keep the network")
    parser.add_argument("--updates", type=int, default=120, help="with --start long")
    parser.add_argument("--seconds", type=float, default=1e9, help="with --start long: no update is begun after this")
    parser.add_argument("--bonus", type=float, default=None, help="logit of doing as the rule does")
    parser.add_argument("--outright-start", type=Path, default=None, help="where outright begins, if not at weak")
    parser.add_argument("--clones", type=Path, default=None, help="to learn among; default and judge: those shipped")
    parser.add_argument("--recorded", type=Path, default=None, help="worlds that clones are fitted to, beside new ones")
    parser.add_argument("--real-worlds", type=int, default=None)
    parser.add_argument("--refit-units", type=int, default=None)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    flags = parser.parse_args()
    if flags.what == "table":
        table(flags.folder)
    elif flags.what == "train":
        train(flags)
    else:
        learn(flags, flags.variants[0], flags.seeds[0])


if __name__ == "__main__":
    main()
