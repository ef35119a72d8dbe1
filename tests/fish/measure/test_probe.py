"""Probes repeat to the bit."""

from __future__ import annotations

from marlab.fish.measure.probe import greedy, run_probe
from marlab.fish.training.train import FishTrainer
from marlab.lab.config import altered
from tests.fish.cases import SMALL


def test_two_probes_of_one_policy_are_identical() -> None:
    trainer = FishTrainer(SMALL)
    cfg = altered(trainer.sea, num_fish=8)
    a, b = (run_probe(greedy(trainer.net), cfg, [3, 4, 5]) for _ in range(2))
    assert (a.death_steps == b.death_steps).all() and (a.total_reward == b.total_reward).all()
