"""Speed of the fish environments that other libraries use, beside what they stand on, in the same run.

    python benchmarks/fish_envs.py          # about a minute

One arena: `FishEscape-v0` beside a plain loop over bare floats, whole episodes with their resets. Many arenas: the
Gymnasium vector environment and the one for stable-baselines3 beside the bare `FishWorld`. One thread, CPU time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import gymnasium
import numpy as np
import torch
from machine import commit, describe

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.fish.reference import ReferenceFish, ReferenceSea

import marlab.fish  # noqa: F401  registers the environments
from marlab.fish.envs.sb3 import FishVecEnv
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.reset import seeded_reset
from marlab.fish.sea.world import FishWorld

FISH, ARENAS, EPISODES, ROUNDS, ROUND_S = 25, 256, 4, 3, 1.5


def loop(inputs: int) -> float:
    """Env-steps per CPU second of the plain loop."""
    taken = 0.0
    for seed in range(EPISODES):
        state, _ = seeded_reset([seed], SeaConfig(), FISH)
        rows = torch.stack(state[:4], dim=-1)[0].double().tolist()
        sea = ReferenceSea(
            [ReferenceFish(*row) for row in rows], *(float(v[0]) for v in state.predator), with_neighbours=inputs == 18
        )
        actions = np.random.default_rng(seed).integers(0, 5, (500, FISH)).tolist()
        began = time.process_time()
        for row in actions:
            sea.step(row)
        taken += time.process_time() - began
    return 500 * EPISODES / taken


def single(inputs: int) -> float:
    """Env-steps per CPU second of the environment, resets included."""
    env = gymnasium.make("FishEscape-v0", num_fish=FISH, include_neighbor_features=inputs == 18)
    actions = np.random.default_rng(0).integers(0, 5, (500, FISH))
    env.reset(seed=0)
    steps, began = 0, time.process_time()
    for seed in range(EPISODES):
        env.reset(seed=seed)
        for row in actions:
            _, _, terminated, truncated, _ = env.step(row)
            steps += 1
            if terminated or truncated:
                break
    return steps / (time.process_time() - began)


def rate(step: Callable[[int], object]) -> float:
    """Fish-steps per CPU second, the median of some rounds."""
    rates = []
    for _ in range(ROUNDS + 1):
        steps, began = 0, time.process_time()
        while time.process_time() - began < ROUND_S:
            step(steps % 64)
            steps += 1
        rates.append(steps * ARENAS * FISH / (time.process_time() - began))
    return sorted(rates[1:])[ROUNDS // 2]


def main() -> None:
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    print(describe(), "commit", commit())
    print(f"\none arena, {FISH} fish, env-steps per CPU second")
    for inputs in (18, 11):
        bare, env = loop(inputs), single(inputs)
        print(f"  {inputs} inputs: bare floats {bare:,.0f}, FishEscape-v0 {env:,.0f}, {env / bare:.2f} of it")
    print(f"\n{ARENAS} arenas, fish-steps per CPU second")
    for inputs in (18, 11):
        many(inputs)


def many(inputs: int) -> None:
    settings = {"num_fish": FISH, "include_neighbor_features": inputs == 18}
    world = FishWorld(SeaConfig(**settings), ARENAS)
    actions = torch.randint(0, 5, (64, ARENAS, FISH))
    rows = actions.numpy()
    vector = gymnasium.make_vec("FishEscape-v0", ARENAS, "vector_entry_point", **settings)
    vector.reset(seed=0)
    other = FishVecEnv(ARENAS, **settings)
    other.reset()
    bare = rate(lambda i: world.step(actions[i]))
    found = {
        "gymnasium": rate(lambda i: vector.step(rows[i])),
        "stable-baselines3": rate(lambda i: other.step(rows[i])),
    }
    for name, speed in found.items():
        print(f"  {inputs} inputs: FishWorld {bare:,.0f}, {name} {speed:,.0f}, {speed / bare:.2f} of it")


if __name__ == "__main__":
    main()
