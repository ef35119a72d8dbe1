"""`marlab fish probe`: the record of one probe."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marlab.fish.commands.probe import main
from marlab.fish.training.networks import KIND, PATTERN
from marlab.fish.training.train import FishTrainer
from marlab.lab.errors import UserError
from marlab.lab.runs.checkpoint import CheckpointStore
from tests.fish.cases import SMALL


def test_record_and_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = CheckpointStore(tmp_path, KIND, PATTERN).save(7, FishTrainer(SMALL).state_dict())
    out = tmp_path / "probe"
    assert main([str(path), "--episodes", "2", "--fish", "4", "--output-dir", str(out), "--device", "cpu"]) == 0
    assert "2 x 4 fish" in capsys.readouterr().out
    record = json.loads((out / "probe.json").read_text())
    assert record["iteration"] == 7 and len(record["episodes"]) == 2
    drawn = ["death_histogram", *(["step_one_polar"] if record["step_one_deaths"] else [])]
    files = {f"{figure}.{kind}" for figure in drawn for kind in ("png", "svg")}
    assert {p.name for p in out.iterdir()} == {"probe.json"} | files


def test_wrong_flags() -> None:
    with pytest.raises(UserError, match="Name a checkpoint"):
        main([])
    with pytest.raises(UserError, match="episodes is 0"):
        main(["a.pt", "--episodes", "0"])
