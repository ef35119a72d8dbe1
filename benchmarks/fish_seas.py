"""Train a shoal in each named sea, several seeds, and measure it beside the reactive scripts and the look-ahead.

    python benchmarks/fish_seas.py --device cuda --seas pursuit,intercept --seeds 0,1,2 --out runs/seas

Per sea: survival on held-out arenas (the same for everybody) with Student's 95 % intervals over arenas, and each seed's
paired difference to the best script. Writes `SEA.json` and a policy file per seed. Several seas run side by side, one
process each. `--look-ahead 100` measures the look-ahead instead, with what was trained before among its continuations.
"""

from __future__ import annotations

import argparse
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
from marlab.fish.measure.lookahead import LookAhead
from marlab.fish.measure.policies import Policy, Seer, play
from marlab.fish.measure.probe import draw_seeds, greedy
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.constants import EPISODE_STEPS
from marlab.fish.sea.dynamics import advance
from marlab.fish.sea.perception import observe
from marlab.fish.sea.predators import predator_step
from marlab.fish.sea.reset import seeded_reset
from marlab.fish.sea.seas import PERCEPTION, SEAS, named_sea
from marlab.fish.training import assemble
from marlab.fish.training.config import PRESETS, FishTrainConfig
from marlab.fish.training.networks import Trained, load_policy, save_policy
from marlab.fish.training.train import FishTrainer
from marlab.lab.config import altered, from_dict, load_preset
from marlab.lab.stats import mean_interval

GPU = {
    "num_envs": 2048, "n_steps": 32, "batch_size": 16384, "n_epochs": 1, "cuda_graph": True, "fused_step": True,
}  # fmt: skip
"""What differs from the presets on a GPU: many more arenas at once; rollouts and gradient steps are recorded."""
TIMED = 10_000
"""Iterations of a schedule that follows the clock: it jumps to the one whose share of the time is over."""


def config_of(sea: str, seed: int, device: str, iterations: int | None, **settings: Any) -> FishTrainConfig:
    config = from_dict(FishTrainConfig, load_preset(sea, PRESETS).values, f"preset {sea}")
    total = iterations or config.iterations
    half, late = total // 2, 3 * total // 4  # the preset's windows, for this many iterations
    windows = f"{half}-{late - 1}:0.003,{late}+:0.0"
    changes = {"multi_eval_interval": 0, "total_iterations": total, "entropy_coef_schedule": windows, **settings}
    return altered(config, seed=seed, device=device, **(GPU if device == "cuda" else {}), **changes)


def trained(config: FishTrainConfig, seconds: float, label: str) -> tuple[FishTrainer, dict[str, float]]:
    """Train to the end of the schedule; with `seconds` the schedule follows the clock and ends with it."""
    trainer, began, samples, last, done = FishTrainer(config), time.time(), 0.0, 0.0, 0
    while trainer.step < trainer.total:
        metrics, done = trainer.iterate(), done + 1
        if seconds:
            trainer.step = max(trainer.step, min(trainer.total, int((time.time() - began) / seconds * trainer.total)))
        samples += metrics.get("ppo/samples", 0.0)
        last = metrics.get("custom/avg_survival_rate", last)
        if done % 25 == 0:
            told = {k: round(float(metrics[f"ppo/{k}"]), 4) for k in ("entropy", "approx_kl", "explained_variance")}
            print(f"{label} {done} {time.time() - began:.0f} s, {samples / 1e6:.0f} M, {last:.3f}", told, flush=True)
    return trainer, {
        "iterations": done, "seconds": round(time.time() - began, 1), "samples": samples, "training_survival": last,
    }  # fmt: skip


@torch.no_grad()
def survival(who: Policy | Seer, cfg: SeaConfig, seeds: list[int], device: str, record: bool = False) -> list[float]:
    """Per arena. With `record` a step of the whole is recorded as a CUDA graph and replayed."""
    start, _ = seeded_reset(seeds, cfg, device=device)
    if not (record and device == "cuda"):
        return [float(s) for s in play(start, who, cfg).survival.cpu()]
    now, hunt = start.clone(), predator_step(cfg)

    def step() -> None:
        actions = who(observe(now, cfg)) if callable(who) else who.act(now, cfg)
        for buffer, value in zip(now, advance(now, actions, hunt)):
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


def line(values: list[float]) -> dict[str, float]:
    mean, low, high = (float(v) for v in mean_interval(np.array(values)))
    return {"survival": mean, "low": low, "high": high, "arenas": len(values)}


def run_sea(name: str, args: argparse.Namespace) -> dict[str, Any]:
    seeds = draw_seeds(np.random.default_rng(HELD_OUT_SEED), args.arenas)
    cfg = replace(named_sea(name), include_neighbor_features=False)
    scripts = ladder(torch.device(args.device), RIVALS)
    played = {n: survival(p, cfg, seeds, args.device, record=n != "random") for n, p in scripts.items()}
    best = max(played, key=lambda n: float(np.mean(played[n])))
    report: dict[str, Any] = {
        "sea": name, "machine": describe(), "commit": commit(), "best_script": best,
        "policies": {n: line(v) for n, v in played.items()}, "seeds": {},
    }  # fmt: skip
    print(name, {n: round(float(np.mean(v)), 3) for n, v in played.items()}, flush=True)
    settings = json.loads(args.settings)
    for seed in args.seeds.split(","):
        config = config_of(name, int(seed), args.device, TIMED if args.seconds else args.iterations, **settings)
        share = args.seconds / len(args.seeds.split(","))
        trainer, told = trained(config, share, f"{name}{args.suffix} seed {seed}")
        own = survival(greedy(trainer.net), replace(cfg, **eyes(config)), seeds, args.device, record=True)
        gain = line([a - b for a, b in zip(own, played[best])])
        report["seeds"][seed] = {**line(own), "gain": gain, **told}
        played[f"seed {seed}"] = own
        model = Trained(
            trainer.net.cpu(),
            assemble.sea_config(config),
            assemble.hidden_sizes(config),
            config.activation,
            trainer.step,
            config.policy_frame,
        )
        save_policy(model, args.out / f"{name}{args.suffix}_{seed}.pt")
        print(f"{name} seed {seed}: {report['seeds'][seed]}", flush=True)
        write(report, args, name)
    return report


def look_ahead(name: str, args: argparse.Namespace) -> None:
    """What the look-ahead saves that goes on with two scripts and the trained policy of the first seed (or four)."""
    seeds = draw_seeds(np.random.default_rng(HELD_OUT_SEED), args.look_ahead)
    cfg = replace(named_sea(name), include_neighbor_features=False)
    report: dict[str, Any] = {"sea": name, "machine": describe(), "commit": commit(), "arenas": len(seeds)}
    players: dict[str, Policy | Seer] = {}
    for seed in args.seeds.split(","):
        path = args.policies / f"{name}{args.suffix}_{seed}.pt"
        model = load_policy(path, args.device) if path.exists() else None
        if model is not None and model.sea.observation_size == cfg.observation_size:
            players[f"seed {seed}"] = greedy(model.net)
    first = next((p for p in players.values() if callable(p)), None)
    players["look-ahead"] = LookAhead(args.steps) if first is None else LookAhead(args.steps, ("slip", "swerve"), first)
    for label, player in players.items():
        began = time.time()
        values = survival(player, cfg, seeds, args.device, record=True)
        report[label] = {**line(values), "seconds": round(time.time() - began, 1)}
        print(name, label, report[label], flush=True)
        (args.out / f"{name}{args.suffix}_look_ahead.json").write_text(json.dumps(report, indent=1))


def eyes(config: FishTrainConfig) -> dict[str, Any]:
    return {field: getattr(config.sea, field) for field in PERCEPTION}


def write(report: dict[str, Any], args: argparse.Namespace, name: str) -> None:
    (args.out / f"{name}{args.suffix}.json").write_text(json.dumps(report, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--seas", default=",".join(name for name in SEAS if name != "v32"))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--iterations", type=int, default=None, help="default: the preset's")
    parser.add_argument("--settings", default="{}", help="further settings of the training, as JSON")
    parser.add_argument("--suffix", default="", help="of the files, where the settings differ")
    parser.add_argument("--arenas", type=int, default=200)
    parser.add_argument("--look-ahead", type=int, default=0, help="no training: play the look-ahead in so many arenas")
    parser.add_argument("--steps", type=int, default=12, help="how far the look-ahead sees")
    parser.add_argument("--policies", type=Path, default=Path("runs/seas"), help="where --look-ahead finds SEA_SEED.pt")
    parser.add_argument(
        "--seconds", type=float, default=0.0, help="at most so long for all seeds of a sea; 0: any time"
    )
    parser.add_argument("--out", type=Path, default=Path("runs/seas"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    seas = args.seas.split(",")
    if len(seas) == 1:
        (look_ahead if args.look_ahead else run_sea)(seas[0], args)
        return
    rest = sys.argv[1:]
    if "--seas" in rest:
        del rest[rest.index("--seas") : rest.index("--seas") + 2]
    children = [subprocess.Popen([sys.executable, __file__, "--seas", sea, *rest]) for sea in seas]
    for child in children:
        child.wait()


if __name__ == "__main__":
    main()
