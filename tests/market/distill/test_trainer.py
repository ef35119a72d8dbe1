"""A student takes over what its teachers do, and a distillation that was stopped goes on to the bit."""

from __future__ import annotations

from pathlib import Path

import torch

from marlab.lab.runs.testing import assert_resume_equal
from marlab.market.distill.settings import DistillConfig
from marlab.market.distill.teachers import Teacher, find
from marlab.market.distill.trainer import DistillTrainer
from marlab.market.rules.habits import ALL, USUAL, Learnt
from tests.market.distill.test_teachers import a_net

CPU = torch.device("cpu")


def tiny(**changes: object) -> DistillConfig:
    values: dict[str, object] = {
        "sources": ("rule",), "worlds": 2, "generations": 2, "play_days": 1, "days": (5, 5), "shapes": ("2x3",),
        "learners": 2, "hidden": (8,), "steps": 40, "batch": 256, "lr": 0.02, "compare_worlds": 2, "compare_days": 5,
        "opponents": ("SyncRandomStdAgent", "RandomStdAgent"), "device": "cpu",
    }  # fmt: skip
    return DistillConfig(**values | changes)  # type: ignore[arg-type]


def test_the_student_learns_its_teachers_lot() -> None:
    trainer = DistillTrainer(tiny(), [Teacher("one", a_net(1))], CPU)
    first = trainer.iterate()
    last = trainer.iterate()
    assert last["distill/agreement"] > 0.9 and last["distill/loss"] < first["distill/loss"]


def test_weights_say_whom_to_follow() -> None:
    teachers = [Teacher("one", a_net(1)), find("rule")]
    trainer = DistillTrainer(tiny(generations=1), teachers, CPU, torch.tensor([[0.0, 1.0], [0.0, 1.0]]))
    _, _, target = trainer._situations()
    assert bool((target[:, [0, 4, 11, 15]] > 0.99).all())


def test_networks_of_four_layers_are_asked_in_the_market() -> None:
    trainer = DistillTrainer(tiny(generations=1), [find("hrl"), find("rule")], CPU)
    x, mask, target = trainer._situations()
    assert len(x) == len(target) > 20 and torch.allclose(target.sum(-1), torch.full((len(x),), 4.0))
    assert bool((target[~mask] == 0).all()) and float((target[:, 4] < 0.9).float().mean()) > 0.1


def test_habits_are_asked_in_the_market() -> None:
    usual = Teacher("usual", habits=Learnt())
    other = Teacher("other", habits=Learnt(*[tuple({**dict(zip(ALL, USUAL)), "opening_lot_1": 2.0}.values())] * 3))
    _, mask, target = DistillTrainer(tiny(generations=1), [usual, other], CPU)._situations()
    lots = target[:, 4:11]
    assert bool((target[~mask] == 0).all()) and bool((target[:, 0] > 0.99).all())  # both counter where the rule does
    assert 0 < float((lots[:, 2] == 0.5).float().mean()) < float((lots[:, 0] >= 0.5).float().mean()) == 1.0


def test_going_on_from_a_saved_state_is_exact(tmp_path: Path) -> None:
    config = tiny(steps=3)
    assert_resume_equal(
        lambda: DistillTrainer(config, [Teacher("one", a_net(1))], CPU), first=1, second=1, folder=tmp_path
    )
