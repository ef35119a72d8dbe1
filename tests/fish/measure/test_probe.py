"""Probes repeat to the bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from marlab.fish.measure.policies import scripted
from marlab.fish.measure.probe import film_worst, greedy, run_probe, worst_episodes
from marlab.fish.measure.record import ProbeArrays
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.dynamics import SeaState
from marlab.fish.training.train import FishTrainer
from marlab.lab.config import altered
from marlab.lab.film import can_film
from tests.fish.cases import SMALL


def test_two_probes_of_one_policy_are_identical() -> None:
    trainer = FishTrainer(SMALL)
    cfg = altered(trainer.sea, num_fish=8)
    a, b = (run_probe(greedy(trainer.net), cfg, [3, 4, 5]) for _ in range(2))
    assert (a.death_steps == b.death_steps).all() and (a.total_reward == b.total_reward).all()


def _with_survivors(alive: list[int]) -> ProbeArrays:
    deaths = np.array([[-1] * n + [7] * (9 - n) for n in alive])
    nothing = np.zeros((len(alive), 2))
    return ProbeArrays(
        range(len(alive)), deaths, nothing[:, 0], nothing[:, 0], nothing, nothing, nothing, nothing, nothing
    )  # fmt: skip


def test_fewest_survivors_first_then_by_number() -> None:
    assert worst_episodes(_with_survivors([5, 3, 4, 9, 3]), 4) == [1, 4, 2, 0]


@pytest.mark.skipif(not can_film(), reason="imageio-ffmpeg is not installed")
def test_the_worst_are_filmed_as_they_were_played(tmp_path: Path) -> None:
    path: list[SeaState] = []
    cfg = SeaConfig(num_fish=6, include_neighbor_features=False)
    probe = run_probe(scripted("hold"), cfg, [3, 4, 5], path=path)
    films = film_worst(probe, path, 2, lambda rank, episode: tmp_path / f"{rank}_{episode}.mp4", max_steps=4)
    assert [film.episode for film in films] == worst_episodes(probe, 2)
    for film in films:
        assert film.frames == 5 and film.file.stat().st_size > 500
        assert film.file.name == f"{film.rank}_{film.episode}.mp4"
