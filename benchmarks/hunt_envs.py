"""Speed of the hunt's environments that other libraries use, beside what they stand on, in the same run.

    python benchmarks/hunt_envs.py          # about a minute

One game: `HuntEnv` (PettingZoo) and `StagHunt-v0` (Gymnasium) beside the scalar rules alone and beside one game as
tensors, which is what `HuntEnv` stepped before; random actions, whole episodes with their resets. Many games: the
vector environment. One thread, CPU time; a step is one of a game, for all of its players.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import gymnasium
import numpy as np
import torch
from machine import commit, describe

from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.game.scalar import Rules
from marlab.hunt.game.views import View
from marlab.hunt.players.env import HuntEnv

NAMES, GAMES, ROUNDS, ROUND_S = ("msh_4x4", "msh_8x8_b5", "msh_12x12_6p"), 4096, 3, 1.0


def rate(play: Callable[[], int]) -> float:
    """Steps per CPU second, the best of some rounds."""
    best = 0.0
    for _ in range(ROUNDS):
        steps, began = 0, time.process_time()
        while time.process_time() < began + ROUND_S:
            steps += play()
        best = max(best, steps / (time.process_time() - began))
    return best


def pettingzoo(name: str) -> Callable[[], int]:
    env, rng = HuntEnv(name), random.Random(0)

    def play() -> int:
        steps = 0
        env.reset()
        while env.agents:
            env.step({agent: rng.randrange(7) for agent in env.agents})
            steps += 1
        return steps

    return play


def scalar(name: str) -> Callable[[], int]:
    rules, rng = Rules(game_config(name)), random.Random(0)
    players = rules.config.players

    def play() -> int:
        s, over = rules.start(rng), False
        while not over:
            step = rules.step(s, [rng.randrange(7) for _ in range(players)])
            s, over = step.after, step.over
        return s.t

    return play


def tensors(name: str) -> Callable[[], int]:
    """One game as a batch of one, with what its players see."""
    config, generator = game_config(name), torch.Generator().manual_seed(0)

    def play() -> int:
        game = make_game(config, generator, maps=1)
        state, over = game.reset(1, generator), False
        while not over:
            state, outcome = game.step(state, torch.randint(7, state.cell.shape, generator=generator))
            view = View(game, state)
            _ = view.grid.numpy(), view.mask.numpy(), view.actions.numpy(), view.alive.numpy()
            over = bool(outcome.over)
        return int(state.t)

    return play


def joint(name: str) -> Callable[[], int]:
    env = gymnasium.make("marlab.hunt.players.gym:StagHunt-v0", game=name, disable_env_checker=True).unwrapped
    rng = np.random.default_rng(0)
    actions = rng.integers(0, 7, (1000, game_config(name).players))

    def play() -> int:
        steps, over = 0, False
        env.reset()
        while not over:
            over = env.step(actions[steps % 1000])[2]
            steps += 1
        return steps

    return play


def vector(name: str) -> Callable[[], int]:
    envs = gymnasium.make_vec("marlab.hunt.players.gym:StagHunt-v0", num_envs=GAMES, game=name)
    actions = np.random.default_rng(0).integers(0, 7, (GAMES, game_config(name).players))
    envs.reset(seed=0)

    def play() -> int:
        envs.step(actions)
        return GAMES

    return play


def main() -> None:
    torch.set_num_threads(1)
    print(f"{describe()}, commit {commit()}")
    kinds = {"HuntEnv": pettingzoo, "StagHunt-v0": joint, "scalar rules": scalar, "one game as tensors": tensors,
             f"vector, {GAMES} games": vector}  # fmt: skip
    for name in NAMES:
        rates = {kind: rate(make(name)) for kind, make in kinds.items()}
        told = ", ".join(f"{kind} {value:,.0f}" for kind, value in rates.items())
        ratio = rates["HuntEnv"] / rates["one game as tensors"]
        print(f"{name}: {told} steps/s; HuntEnv is {ratio:.1f} times one game as tensors", flush=True)


if __name__ == "__main__":
    main()
