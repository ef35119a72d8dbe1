"""`marlab fish watch`: films of checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.cli import main as cli
from marlab.fish.training.networks import KIND, PATTERN
from marlab.fish.training.train import FishTrainer
from marlab.lab.config import altered
from marlab.lab.runs.checkpoint import CheckpointStore
from tests.fish.cases import SMALL


@pytest.mark.parametrize("neighbours", [False, True])
def test_watch_films_checkpoints_of_both_widths(
    tmp_path: Path, neighbours: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer = FishTrainer(altered(SMALL, include_neighbor_features=neighbours))
    store = CheckpointStore(tmp_path, KIND, PATTERN)
    path = store.save(1, trainer.state_dict())
    words = [str(path), "--film", str(tmp_path / "a.mp4"), "--steps", "30", "--fish", "5", "--size", "200"]
    assert cli(["fish", "watch", *words]) == 0
    assert "31 frames" in capsys.readouterr().out
    assert (tmp_path / "a.mp4").stat().st_size > 1000
