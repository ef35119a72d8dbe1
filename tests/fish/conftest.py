"""One finished training for all tests that look at what a run leaves behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.fish.training.train import train
from marlab.lab.runs.run import RunOptions
from tests.fish.cases import SMALL


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "small"
    train(SMALL, RunOptions(output_dir=path), quiet=True)
    return path
