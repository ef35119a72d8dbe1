"""Train a shoal in each named sea, several seeds, and measure it beside the reactive scripts and the foresight.

    python benchmarks/fish_seas.py --device cuda --seas pursuit,intercept --seeds 0,1,2 --out runs/seas

Per sea: survival on held-out arenas (the same for everybody) with Student's 95 % intervals over arenas, and each seed's
paired difference to the best script. Writes `SEA.json` and, as it goes, a policy file per seed. Several seas run side
by side, one process each. `--measure` trains nothing and measures the policy files of `--policies`; `--look-ahead 40`
plays them in so many arenas, and the look-ahead that begins with each (`measure/foresight.py`).
"""

from __future__ import annotations

import argparse
import copy
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import commit, describe

from marlab.fish.measure.compare import RIVALS, ladder
from marlab.fish.measure.config import HELD_OUT_SEED
from marlab.fish.measure.foresight import Search, improve, replay
from marlab.fish.measure.policies import Policy, play
from marlab.fish.measure.probe import draw_seeds, greedy
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.constants import EPISODE_STEPS
from marlab.fish.sea.dynamics import advance
from marlab.fish.sea.perception import observe
from marlab.fish.sea.predators import predator_step
from marlab.fish.sea.reset import seeded_reset
from marlab.fish.sea.seas import SEAS, named_sea
from marlab.fish.training import assemble
from marlab.fish.training.config import PRESETS, FishTrainConfig
from marlab.fish.training.networks import Trained, load_policy, save_policy
from marlab.fish.training.train import FishTrainer
from marlab.lab.config import altered, from_dict, load_preset
from marlab.lab.ppo.nets import ActorCritic
from marlab.lab.stats import mean_interval

BEGAN = time.time()
GPU = {"num_envs": 2048, "n_steps": 32, "batch_size": 16384, "n_epochs": 1, "cuda_graph": True}
"""What differs from the presets on a GPU: many more arenas at once; rollouts and gradient steps are recorded."""
TIMED = 10_000
"""Iterations of a schedule that follows the clock: it jumps to the one whose share of the time is over."""
SAVE_EVERY = 25
"""Iterations after which the policy is written anew."""
MEASURING = 0.12
"""Share of `--seconds` that is left for measuring, at least `MEASURING_S`."""
MEASURING_S = 25.0


def config_of(sea: str, seed: int, device: str, iterations: int | None, **settings: Any) -> FishTrainConfig:
    config = from_dict(FishTrainConfig, load_preset(sea, PRESETS).values, f"preset {sea}")
    total = iterations or config.iterations
    half, late = total // 2, 3 * total // 4  # the preset's windows, for this many iterations
    windows = f"{half}-{late - 1}:0.003,{late}+:0.0"
    changes = {"multi_eval_interval": 0, "total_iterations": total, "entropy_coef_schedule": windows, **settings}
    return altered(config, seed=seed, device=device, **(GPU if device == "cuda" else {}), **changes)


def trained(config: FishTrainConfig, seconds: float, label: str, file: Path) -> tuple[FishTrainer, dict[str, float]]:
    """Train to the end of the schedule; with `seconds` it jumps ahead to where the clock is, and ends with it."""
    trainer, began, samples, last, done = FishTrainer(config), time.time(), 0.0, 0.0, 0
    while trainer.step < trainer.total:
        metrics, done = trainer.iterate(), done + 1
        if seconds:
            trainer.step = max(trainer.step, min(trainer.total, int((time.time() - began) / seconds * trainer.total)))
        samples += metrics.get("ppo/samples", 0.0)
        last = metrics.get("custom/avg_survival_rate", last)
        if done % SAVE_EVERY == 0:
            told = {k: round(float(metrics[f"ppo/{k}"]), 4) for k in ("entropy", "approx_kl", "explained_variance")}
            print(f"{label} {done} {time.time() - began:.0f} s, {samples / 1e6:.0f} M, {last:.3f}", told, flush=True)
            save(trainer, config, file)
    save(trainer, config, file)
    return trainer, {
        "iterations": done,
        "seconds": round(time.time() - began, 1),
        "samples": samples,
        "training_survival": last,
    }


def save(trainer: FishTrainer, config: FishTrainConfig, file: Path) -> None:
    net = copy.deepcopy(trainer.net).cpu()
    sea, hidden = assemble.sea_config(config), assemble.hidden_sizes(config)
    save_policy(Trained(net, sea, hidden, config.activation, trainer.step, config.policy_frame), file)


@torch.no_grad()
def survival(who: Policy, cfg: SeaConfig, seeds: list[int], device: str, record: bool = False) -> list[float]:
    """Per arena. With `record` a step of the whole is recorded as a CUDA graph and replayed."""
    start, _ = seeded_reset(seeds, cfg, device=device)
    if not (record and device == "cuda"):
        return [float(s) for s in play(start, who, cfg).survival.cpu()]
    now, hunt = start.clone(), predator_step(cfg)

    def step() -> None:
        for buffer, value in zip(now, advance(now, who(observe(now, cfg)), hunt)):
            buffer.copy_(value)

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for buffer, value in zip(now, start):
        buffer.copy_(value)
    for _ in range(EPISODE_STEPS):
        graph.replay()
    return [float(s) for s in (now.alive.sum(1) / now.exists.sum(1)).cpu()]


def sampled(net: ActorCritic, device: str) -> Policy:
    """The network's actions drawn by their chances, as in training, in place of the likeliest one."""
    generator = torch.Generator(device=device).manual_seed(0)

    def policy(obs: torch.Tensor) -> torch.Tensor:
        logits = net.logits(obs)
        lots = torch.rand(logits.shape, generator=generator, device=device).clamp(min=1e-20)
        return (logits - (-lots.log()).log()).argmax(-1)

    return policy


def line(values: list[float]) -> dict[str, float]:
    mean, low, high = (float(v) for v in mean_interval(np.array(values)))
    return {"survival": mean, "low": low, "high": high, "arenas": len(values)}


def run_sea(name: str, args: argparse.Namespace) -> None:
    """Train every seed, then measure all of them beside the scripts."""
    numbers, settings = args.seeds.split(","), json.loads(args.settings)
    told: dict[str, dict[str, float]] = {}
    reserve = max(MEASURING_S, MEASURING * args.seconds)
    for position, seed in enumerate(numbers):
        config = config_of(
            name, int(seed), args.device, args.iterations or (TIMED if args.seconds else None), **settings
        )
        left = BEGAN + args.seconds - reserve - time.time()
        share = max(1.0, left / (len(numbers) - position)) if args.seconds else 0.0
        file = args.out / f"{name}{args.suffix}_{seed}.pt"
        _, told[seed] = trained(config, share, f"{name}{args.suffix} seed {seed}", file)
    measure(name, args, args.out, told)


def measure(name: str, args: argparse.Namespace, folder: Path, told: dict[str, dict[str, float]]) -> None:
    """All seeds' policies of `folder` and the scripts on the same arenas."""
    seeds = draw_seeds(np.random.default_rng(args.arena_seed), args.arenas)
    cfg = replace(named_sea(name), include_neighbor_features=False)
    report: dict[str, Any] = {
        "sea": name,
        "machine": describe(),
        "commit": commit(),
        "arena_seed": args.arena_seed,
        "policies": {},
        "seeds": {},
    }
    own: dict[str, list[float]] = {}
    for seed in args.seeds.split(","):
        file = folder / f"{name}{args.suffix}_{seed}.pt"
        if not file.exists():
            continue
        model = load_policy(file, args.device)
        own[seed] = survival(greedy(model.net), named_sea(name, model.sea), seeds, args.device, record=True)
        drawn = survival(sampled(model.net, args.device), named_sea(name, model.sea), seeds, args.device)
        report["seeds"][seed] = {**line(own[seed]), "sampled": line(drawn), **told.get(seed, {})}
        write(report, args, name)
    scripts = ladder(torch.device(args.device), RIVALS)
    played = {n: survival(p, cfg, seeds, args.device, record=n != "random") for n, p in scripts.items()}
    best = max(played, key=lambda n: float(np.mean(played[n])))
    report |= {"best_script": best, "policies": {n: line(v) for n, v in played.items()}}
    print(name, {n: round(float(np.mean(v)), 3) for n, v in played.items()}, flush=True)
    for seed, values in own.items():
        report["seeds"][seed]["gain"] = line([a - b for a, b in zip(values, played[best])])
        print(f"{name} seed {seed}: {report['seeds'][seed]}", flush=True)
    write(report, args, name)


def look_ahead(name: str, args: argparse.Namespace) -> None:
    """What the policies of `--policies` save, and what the look-ahead does that begins with each; the same arenas."""
    seeds = draw_seeds(np.random.default_rng(args.arena_seed), args.look_ahead)
    search = Search(seconds=args.seconds or None, candidates=args.candidates, rounds=args.rounds, sweeps=args.sweeps)
    report: dict[str, Any] = {
        "sea": name,
        "machine": describe(),
        "commit": commit(),
        "arena_seed": args.arena_seed,
        "search": vars(search),
    }
    for seed in args.seeds.split(","):
        model = load_policy(args.policies / f"{name}{args.suffix}_{seed}.pt", args.device)
        cfg = named_sea(name, model.sea)
        start, _ = seeded_reset(seeds, cfg, device=args.device)
        began, policy = time.time(), greedy(model.net)
        generator = torch.Generator(device=args.device).manual_seed(int(seed))
        alone = [float(s) for s in play(start, policy, cfg).survival.cpu()]
        plan = improve(start, policy, cfg, search, generator)
        again = replay(start, plan.actions, cfg).alive.float().mean(1)  # what the plan is worth when it is played
        helped = [float(s) for s in again.cpu()]
        report[seed] = {
            "policy": line(alone),
            "look_ahead": line(helped),
            "share": float(np.mean(alone) / np.mean(helped)),
            "gain": line([a - b for a, b in zip(helped, alone)]),
            "seconds": round(time.time() - began, 1),
            "arenas_behind": sum(a < b for a, b in zip(helped, alone)),
        }
        print(name, seed, report[seed], flush=True)
        (args.out / f"{name}{args.suffix}_look_ahead.json").write_text(json.dumps(report, indent=1))


def write(report: dict[str, Any], args: argparse.Namespace, name: str) -> None:
    (args.out / f"{name}{args.suffix}.json").write_text(json.dumps(report, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--seas", default=",".join(name for name in SEAS if name != "v32"))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument(
        "--iterations", type=int, default=None, help="default: the preset's, or as many as fit into --seconds"
    )
    parser.add_argument("--settings", default="{}", help="further settings of the training, as JSON")
    parser.add_argument("--suffix", default="", help="of the files, where the settings differ")
    parser.add_argument("--arenas", type=int, default=200)
    parser.add_argument("--arena-seed", type=int, default=HELD_OUT_SEED, help="draws the arenas")
    parser.add_argument("--measure", action="store_true", help="no training: measure policy files")
    parser.add_argument("--look-ahead", type=int, default=0, help="no training: play the look-ahead in so many arenas")
    parser.add_argument("--candidates", type=int, default=Search.candidates, help="of the look-ahead")
    parser.add_argument("--rounds", type=int, default=Search.rounds, help="of the look-ahead")
    parser.add_argument("--sweeps", type=int, default=Search.sweeps, help="of the look-ahead")
    parser.add_argument("--policies", type=Path, default=Path("runs/seas"), help="where policy files SEA_SEED.pt are")
    parser.add_argument("--seconds", type=float, default=0.0, help="at most so long for a sea, start to end; 0: any")
    parser.add_argument("--out", type=Path, default=Path("runs/seas"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    seas = args.seas.split(",")
    if len(seas) == 1:
        if args.look_ahead:
            look_ahead(seas[0], args)
        elif args.measure:
            measure(seas[0], args, args.policies, {})
        else:
            run_sea(seas[0], args)
        return
    rest = sys.argv[1:]
    if "--seas" in rest:
        del rest[rest.index("--seas") : rest.index("--seas") + 2]
    children = [subprocess.Popen([sys.executable, __file__, "--seas", sea, *rest]) for sea in seas]
    for child in children:
        child.wait()


if __name__ == "__main__":
    main()
