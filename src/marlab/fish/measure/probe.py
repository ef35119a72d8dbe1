"""Probes: many fish, each on its own observation with its best action, on seeded arenas; and films of their worst.

A probe plays all its episodes at once, so that one forward pass serves every fish of every episode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from marlab.fish.envs.frame import Scene, paint
from marlab.fish.measure.ceiling import doomed_mask
from marlab.fish.measure.policies import Policy, play
from marlab.fish.measure.record import ProbeArrays
from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.dynamics import SeaState
from marlab.fish.sea.reset import seeded_reset
from marlab.lab.film import FilmCut, until, write_mp4
from marlab.lab.ppo.nets import ActorCritic
from marlab.lab.progress import Progress


def greedy(net: ActorCritic) -> Policy:
    """The network's most likely action for every fish."""

    def policy(obs: Tensor) -> Tensor:
        return net.logits(obs).argmax(-1)

    return policy


def draw_seeds(rng: np.random.Generator, count: int) -> list[int]:
    """Arena seeds, one draw each, as the original's probes drew them."""
    return [int(rng.integers(0, 2**31 - 1)) for _ in range(count)]


def at_settings(cfg: SeaConfig, fish: int, boost: float, penalty: float) -> SeaConfig:
    """The sea as a probe meets it: its own number of fish, the boost and the penalty of the moment."""
    return replace(cfg, num_fish=fish, escape_boost_speed=boost, density_penalty_coef=penalty)


@torch.no_grad()
def run_probe(
    policy: Policy,
    cfg: SeaConfig,
    seeds: Sequence[int],
    device: torch.device | str = "cpu",
    path: list[SeaState] | None = None,
) -> ProbeArrays:
    """Play `cfg.num_fish` fish in one arena per seed to the end and gather what a probe record needs.

    `path` takes every state of the probe, the start included: what a film of it must show. (Playing an episode a
    second time on its own is not the same: networks round differently in batches of another size.)
    """
    start, pre_roll = seeded_reset(seeds, cfg, device=device)
    after_one: list[SeaState] = []

    def on_step(state: SeaState) -> None:
        if not after_one:
            after_one.append(state)
        if path is not None:
            path.append(state)

    if path is not None:
        path.append(start)
    played = play(start, policy, cfg, on_step=on_step)
    first, final = after_one[0], played.final
    somebody = (played.alive_counts > 0).sum(0)  # [E] steps after which somebody still lived
    return ProbeArrays(
        seeds=list(seeds), death_steps=final.death_step.cpu().numpy(),
        total_reward=played.total_reward.cpu().numpy(),
        steps=(somebody + 1).clamp(max=sea.EPISODE_STEPS).cpu().numpy(),
        start_position=_pairs(start.predator_x, start.predator_y),
        start_velocity=_pairs(start.predator_vx, start.predator_vy),
        step_one_position=_pairs(first.predator_x, first.predator_y),
        step_one_velocity=_pairs(first.predator_vx, first.predator_vy), step_one_fish=_pairs(first.x, first.y),
        pre_roll_stats=pre_roll, doomed=doomed_mask(start, 1, cfg).sum(1).cpu().numpy(),
    )  # fmt: skip


def _pairs(x: Tensor, y: Tensor) -> np.ndarray:
    return torch.stack((x, y), -1).cpu().numpy()


FPS = 20


class Film(NamedTuple):
    """One film of a probe's episode."""

    rank: int  # 0: the worst
    episode: int
    frames: int
    file: Path


def worst_episodes(probe: ProbeArrays, count: int) -> list[int]:
    """Episodes with the fewest survivors first, ties by episode number."""
    return [int(i) for i in np.argsort(probe.final_alive, kind="stable")[:count]]


def film_worst(
    probe: ProbeArrays, path: Sequence[SeaState], count: int, file: Callable[[int, int], Path], *, fps: int = FPS,
    max_steps: int = sea.EPISODE_STEPS, stop: Callable[[], bool] = lambda: False, quiet: bool = True,
) -> list[Film]:  # fmt: skip
    """Film the worst episodes of a probe whose states are in `path`, each under the name `file(rank, episode)`; `stop`
    is asked before every frame, and a film that it cuts is not there."""
    shown, worst, films = path[: max_steps + 1], worst_episodes(probe, count), []
    with Progress("filming", total=len(shown) * len(worst), unit="frames", quiet=quiet) as bar, suppress(FilmCut):
        for rank, episode in enumerate(worst):
            target, pictures = file(rank, episode), (paint(Scene.of(state, episode)) for state in shown)
            films.append(Film(rank, episode, write_mp4(target, until(stop, pictures, bar), fps), target))
    return films
