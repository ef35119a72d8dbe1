"""Planning agents that learn in a run: wherever they are cut, they come to the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from marlab.hunt.selfplay.config import HopTrainConfig
from marlab.hunt.training.run import train_hop
from marlab.lab.runs.checkpoint import load_checkpoint
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.runs.testing import assert_same
from tests.hunt.hop_cases import offline, small_training


def config_of(folder: Path) -> HopTrainConfig:
    config = small_training(load_data=folder / "data", total_steps=90)
    return replace(config, pipeline=replace(config.pipeline, gates="warn"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, and with a training that was never cut."""
    folder = tmp_path_factory.mktemp("whole")
    offline(folder / "data", rows=300)
    train_hop(config_of(folder), RunOptions(output_dir=folder / "whole"), quiet=True)
    return folder


@pytest.mark.parametrize("answers", [1, 5, 8], ids=["warm start", "halfway", "between iterations"])
def test_a_training_that_is_cut_anywhere_comes_to_the_same(whole: Path, tmp_path: Path, answers: int) -> None:
    """In the warm start, between two steps of the games, between iterations: weights and metrics equal to the bit."""
    asked = iter([False] * answers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "should_stop", lambda self: next(asked, True))
        stopped = train_hop(config_of(whole), RunOptions(output_dir=tmp_path / "cut"), quiet=True)
    assert stopped.status == "interrupted"
    assert bool(list(stopped.checkpoints.glob("state_*.pt"))) == (answers > 1)
    path = train_hop(config_of(whole), RunOptions(output_dir=tmp_path / "cut", resume=True), quiet=True).path
    assert_same(*(load_checkpoint(p / "agents.pt").state for p in (whole / "whole", path)))
    rows = [[_untimed(row) for row in read_metrics(p / "metrics.jsonl")] for p in (whole / "whole", path)]
    assert_same(*rows)
    assert [file.name for file in (path / "checkpoints").glob("memory_*")] == ["memory_3.pt"]
    assert not list((path / "checkpoints").glob("warm_*"))


def _untimed(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if not name.startswith("time")}
