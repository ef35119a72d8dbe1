"""Restarts, resumption to the bit, and the optimum is learnt."""

from __future__ import annotations

from pathlib import Path

import torch

from examples.tiny_world import rules
from examples.tiny_world.config import TinyConfig
from examples.tiny_world.trainer import TinyTrainer, TinyWorld, steps_too_many
from marlab.lab.runs.testing import assert_resume_equal

SMALL = TinyConfig(n_cells=9, iterations=20, device="cpu")


def test_a_ring_restarts_one_step_late() -> None:
    world = TinyWorld(SMALL, torch.Generator().manual_seed(0))
    world.state = rules.State(torch.tensor([[3, 4]]).expand(64, 2), torch.zeros(64, dtype=torch.long))
    step = world.step(torch.tensor([[2, 1]]).expand(64, 2))  # the first walks up to the second, who waits
    assert step.terminated.all() and (step.reward == 1).all() and not world.acting.any()
    assert (world.state.cells == 4).all()  # the final cells can still be seen
    step = world.step(torch.ones(64, 2, dtype=torch.long))
    assert world.acting.all() and (step.reward == 0).all() and (world.state.time == 0).all()


def test_resumed_equals_never_stopped(tmp_path: Path) -> None:
    assert_resume_equal(lambda: TinyTrainer(SMALL), first=2, second=2, folder=tmp_path)


def test_the_optimum_is_learnt() -> None:
    trainer = TinyTrainer(SMALL)
    assert steps_too_many(trainer.ppo.net, SMALL).float().mean() > 1
    while trainer.step < trainer.total:
        trainer.iterate()
    assert steps_too_many(trainer.ppo.net, SMALL).float().mean() < 0.1
