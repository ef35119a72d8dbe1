"""How long the PPO baseline takes to a mean reward of 2.5 in the stag hunt, msh_4x4, from the first weight on.

    python benchmarks/hunt_ppo.py                    # CPU (2 threads), and the GPU where there is one
    python benchmarks/hunt_ppo.py --device cuda --seeds 0..4

Four players share one network and all learn. The clock starts before anything is built and stops after the first
iteration whose finished episodes (hundreds of them, actions drawn) average 2.5 or more; 2,000 fresh episodes then
say what that policy is worth. 3.0 is the optimum; the lab note's PPO took about an hour (1,500 iterations) to 2.5.
A game step is one step of one game with up to four players.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from machine import commit, describe

from marlab.hunt.players.episodes import REWARD
from marlab.hunt.players.evaluation import evaluate
from marlab.hunt.players.seats import parse_seeds
from marlab.hunt.ppo.config import PPOTrainConfig
from marlab.hunt.ppo.train import PPOTrainer
from marlab.lab.ppo.config import PPOConfig

TARGET = 2.5
LIMIT_S = 1200.0
CPU = PPOTrainConfig()
GPU = PPOTrainConfig(
    device="cuda",
    num_envs=1024,
    total_steps=3_000_000,
    ppo=replace(CPU.ppo, n_steps=32, batch_size=8192, cuda_graph=True),
)
"""More games and larger minibatches: on a GPU an iteration costs the same for many games as for few."""


def measure(config: PPOTrainConfig) -> dict[str, Any]:
    """Train one seed to the target; seconds, game steps and what the policy is worth on fresh episodes."""
    start = time.perf_counter()
    trainer = PPOTrainer(config)
    reward = spent = 0.0
    while reward < TARGET and trainer.step < trainer.total and spent < LIMIT_S:
        reward = float(trainer.iterate().get(REWARD, 0.0))
        if trainer.device.type == "cuda":
            torch.cuda.synchronize()
        spent = time.perf_counter() - start
    steps = trainer.step * config.num_envs * config.ppo.n_steps
    fresh = evaluate(trainer, config.eval_episodes)["sampled"]["over_seeds"]["reward"]["value"]
    return {
        "seed": config.seeds, "reached": reward >= TARGET, "seconds": spent, "game_steps": steps,
        "steps_per_second": steps / spent, "reward": reward, "fresh_episodes": fresh,
    }  # fmt: skip


def settings(config: PPOTrainConfig) -> str:
    ppo: PPOConfig = config.ppo
    return (
        f"{config.num_envs} games x {ppo.n_steps} steps, {ppo.n_epochs} epochs, minibatch {ppo.batch_size}, "
        f"lr {ppo.learning_rate:g}, network {'-'.join(map(str, config.network.hidden))}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda", "both"), default="both")
    parser.add_argument("--seeds", default="0..2")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, help="also write the results here")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    print(f"{describe()}, {os.cpu_count()} CPUs, commit {commit()}", flush=True)
    found: dict[str, Any] = {"machine": describe(), "commit": commit()}
    wanted = {"cpu": CPU, "cuda": GPU} if args.device == "both" else {args.device: CPU if args.device == "cpu" else GPU}
    for device, config in wanted.items():
        if device == "cuda" and not torch.cuda.is_available():
            print("no GPU here: only the CPU was measured")
            continue
        print(f"{device}: {settings(config)}")
        results = []
        for seed in parse_seeds(args.seeds):
            result = measure(replace(config, seeds=str(seed)))
            results.append(result)
            print(
                "  seed {seed}: {seconds:.1f} s, {game_steps:,} game steps ({steps_per_second:,.0f}/s), reward "
                "{reward:.2f}, fresh episodes {fresh_episodes:.2f}".format(**result),
                flush=True,
            )
        if all(r["reached"] for r in results):
            seconds = [r["seconds"] for r in results]
            print(f"  to {TARGET}: median {statistics.median(seconds):.1f} s, slowest {max(seconds):.1f} s")
        else:
            print(f"  {sum(not r['reached'] for r in results)} of {len(results)} seeds did not reach {TARGET}")
        found[device] = {"settings": settings(config), "results": results}
    if args.json:
        args.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
