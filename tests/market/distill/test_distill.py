"""`marlab market distill` from teachers to a table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from marlab.lab.errors import UserError
from marlab.lab.report.draw import draw
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import RunOptions
from marlab.market.distill.distill import distill, weights_of
from marlab.market.distill.teachers import Teacher, find
from marlab.market.networks import around as files
from marlab.market.online.net import AroundRule
from marlab.market.online.steer import Outcome
from marlab.market.rules import around
from tests.market.distill.test_teachers import a_net
from tests.market.distill.test_trainer import tiny


def test_teachers_become_one_student_with_a_table(tmp_path: Path) -> None:
    files.save(tmp_path / "a.npz", a_net(1))
    config = tiny(sources=("rule", str(tmp_path / "a.npz")), generations=1, pick="best")
    run = distill(config, RunOptions(output_dir=tmp_path / "run"), quiet=True)
    assert run.status == "finished" and files.load(run.checkpoints / "around.npz").inputs == around.INPUTS
    told = json.loads((run.path / "results.json").read_text())
    assert set(told) == {"rule", "a.npz", "student"} and told["student"]["minus"] == 0
    table = (run.path / "tables.md").read_text()
    assert "student minus this one" in table
    (run.path / "tables.md").unlink()
    assert draw(read_run(run.path)).verdict == run.verdict and (run.path / "tables.md").read_text() == table


def test_the_best_teacher_of_each_level_is_followed() -> None:
    first = torch.tensor([True, False])

    def fared(one: float, two: float) -> Outcome:
        none = torch.zeros(2)
        return Outcome(torch.tensor([one, two]), first, none, none, none > 0, none)

    teachers = [find("rule"), Teacher("a", a_net(1))]
    weights = weights_of(tiny(pick="best"), teachers, {"rule": fared(1.0, 2.0), "a": fared(1.5, 1.0)})
    assert weights is not None and weights.tolist() == [[0, 1], [1, 0]]
    assert weights_of(tiny(), teachers, {}) is None


def test_a_file_plays_in_the_vector_market_as_in_numpy() -> None:
    net = a_net(2)
    x = torch.randn(4, around.INPUTS)
    torch.testing.assert_close(AroundRule.of(net).logits(x), torch.as_tensor(net(x.numpy())).float())


def test_without_a_source_it_is_refused() -> None:
    with pytest.raises(UserError, match="Nobody to learn from"):
        distill(tiny(sources=()))
