"""Films of the worst episodes of a probe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from marlab.fish.envs.frame import Scene, paint
from marlab.fish.measure.record import ProbeArrays
from marlab.fish.sea.constants import EPISODE_STEPS
from marlab.fish.sea.dynamics import SeaState
from marlab.lab.film import write_mp4

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
    probe: ProbeArrays,
    path: Sequence[SeaState],
    count: int,
    file: Callable[[int, int], Path],
    *,
    fps: int = FPS,
    max_steps: int = EPISODE_STEPS,
) -> list[Film]:
    """Film the worst episodes of a probe whose states are in `path`, each under the name `file(rank, episode)`."""
    films = []
    for rank, episode in enumerate(worst_episodes(probe, count)):
        target = file(rank, episode)
        frames = write_mp4(target, (paint(Scene.of(state, episode)) for state in path[: max_steps + 1]), fps)
        films.append(Film(rank, episode, frames, target))
    return films
