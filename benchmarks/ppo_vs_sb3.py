"""Speed of marlab's PPO beside stable-baselines3: same machine, same run, same network, batch and epochs.

    python benchmarks/ppo_vs_sb3.py            # CPU, both; on a machine with a GPU also the whole loop there

World: `Shoal`, 64 arenas x 25 agents of one shared policy (1,600 rows), 24 inputs, 5 moves. stable-baselines3
plays the same rules with one Gymnasium environment per agent in a DummyVecEnv. Rollout = world + policy.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from machine import commit, describe
from toy_worlds import Shoal, gym_shoal_member

from marlab.lab.ppo.config import PPOConfig
from marlab.lab.ppo.nets import ActorCritic
from marlab.lab.ppo.ppo import PPO
from marlab.lab.runs.rng import Rngs

ARENAS, AGENTS, STEPS, EPOCHS, BATCH = 64, 25, 32, 4, 4096


def ours(arenas: int, steps: int, batch: int, device: str, repeats: int, **options: bool) -> dict[str, float]:
    """Seconds per iteration of each part (median over repeats, after a warm-up)."""
    rngs = Rngs(0, device)
    net = ActorCritic(Shoal.INPUTS, (Shoal.MOVES,), (64, 64), generator=rngs.torch("init", "cpu")).to(device)
    config = PPOConfig(n_steps=steps, n_epochs=EPOCHS, batch_size=batch, **options)
    ppo = PPO(net, config, rngs.torch("policy"))
    world = Shoal(arenas, AGENTS, rngs.torch("world"), device)
    parts: list[dict[str, float]] = []
    for i in range(repeats + 2):
        start = time.perf_counter()
        ppo.update(ppo.collect(world), 3e-4, 0.0)
        if device == "cuda":
            torch.cuda.synchronize()
        whole = time.perf_counter() - start
        taken = {**ppo.timing.pop(), "whole": whole}
        if i >= 2:
            parts.append(taken)
    return {k: statistics.median(p[k] for p in parts) for k in parts[0]}


def theirs(repeats: int) -> dict[str, float]:
    """The same parts of stable-baselines3; its world and policy times are told apart by timing the VecEnv."""
    from stable_baselines3 import PPO as SB3
    from stable_baselines3.common.vec_env import DummyVecEnv

    spent = {"world": 0.0}

    class Timed(DummyVecEnv):
        def step_wait(self):  # type: ignore[no-untyped-def]
            start = time.perf_counter()
            result = super().step_wait()
            spent["world"] += time.perf_counter() - start
            return result

    env = Timed([gym_shoal_member] * (ARENAS * AGENTS))
    model = SB3("MlpPolicy", env, n_steps=STEPS, batch_size=BATCH, n_epochs=EPOCHS, device="cpu", seed=0)
    model._setup_learn(10**9)
    parts: list[dict[str, float]] = []
    for i in range(repeats + 1):
        spent["world"] = 0.0
        start = time.perf_counter()
        model.collect_rollouts(model.env, _silent(model), model.rollout_buffer, STEPS)
        rollout = time.perf_counter() - start
        model.train()
        learning = time.perf_counter() - start - rollout
        if i >= 1:
            world = spent["world"]
            parts.append({"world": world, "policy": rollout - world, "learning": learning, "whole": rollout + learning})
    return {k: statistics.median(p[k] for p in parts) for k in parts[0]}


def _silent(model):  # type: ignore[no-untyped-def]
    from stable_baselines3.common.callbacks import CallbackList
    from stable_baselines3.common.logger import Logger

    model.set_logger(Logger(folder=None, output_formats=[]))
    callback = CallbackList([])
    callback.init_callback(model)
    return callback


def row(name: str, parts: dict[str, float], rows: int) -> str:
    rate = rows / parts["whole"]
    cells = "".join(f"{parts[k] * 1e3:>12.1f}" for k in ("world", "policy", "learning", "whole"))
    return f"{name:<34}{cells}{rate:>16,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{describe()}, commit {commit()}")
    print(f"{STEPS} steps, {EPOCHS} epochs, minibatch {BATCH}, two 64-64 tanh networks; ms per iteration")
    print(f"{'':<34}{'world':>12}{'policy':>12}{'learning':>12}{'whole':>12}{'agent-steps/s':>16}")
    rows = ARENAS * AGENTS * STEPS
    mine = ours(ARENAS, STEPS, BATCH, "cpu", args.repeats)
    print(row("marlab, 64 x 25, CPU", mine, rows), flush=True)
    try:
        other = theirs(args.repeats)
        print(row("stable-baselines3, 1,600 envs", other, rows))
        rollouts = [p["world"] + p["policy"] for p in (other, mine)]
        ratios = [rollouts[0] / rollouts[1], other["learning"] / mine["learning"], other["whole"] / mine["whole"]]
        print("times as fast as stable-baselines3: rollout {:.1f}, learning {:.2f}, whole {:.1f}".format(*ratios))
    except ImportError:
        print("stable-baselines3 is not installed: no comparison")
    if torch.cuda.is_available():
        for arenas, steps, batch in ((64, 32, 4096), (4096, 64, 65536), (16384, 64, 262144)):
            for graph in (False, True):
                name = f"marlab, {arenas} x 25, GPU{', graph' if graph else ''}, batch {batch}"
                parts = ours(arenas, steps, batch, "cuda", args.repeats, cuda_graph=graph)
                print(row(name, parts, arenas * AGENTS * steps), flush=True)


if __name__ == "__main__":
    main()
