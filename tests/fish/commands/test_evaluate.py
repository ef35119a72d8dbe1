"""`marlab fish eval`: an evaluation is a run with its results."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.fish.commands.evaluate import main
from marlab.fish.training.networks import KIND, PATTERN
from marlab.fish.training.train import FishTrainer
from marlab.lab.errors import UserError
from marlab.lab.runs.checkpoint import CheckpointStore
from marlab.lab.runs.records import read_run
from tests.fish.cases import SMALL


def test_an_evaluation_is_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = CheckpointStore(tmp_path, KIND, PATTERN).save(7, FishTrainer(SMALL).state_dict())
    words = "--episodes 2 --fish 4 --no-baselines --no-ceiling --device cpu".split()
    assert main([str(path), *words, "--output-dir", str(tmp_path / "eval")]) == 0
    info = read_run(tmp_path / "eval")
    assert info.status == "finished" and 0 <= info.results["survival"]["value"] <= 1
    assert "2 x 4 fish" in capsys.readouterr().out
    with pytest.raises(UserError, match="Name a checkpoint"):
        main([])
