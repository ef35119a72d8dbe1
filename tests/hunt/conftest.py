"""Runs of models of others that several tests look at; each is made when it is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.hunt.pretraining.run import pretrain_goals
from marlab.lab.runs.run import RunOptions
from tests.hunt.others_cases import tiny


@pytest.fixture(scope="session")
def history_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "history"
    return pretrain_goals(tiny(), RunOptions(output_dir=folder), quiet=True).path


@pytest.fixture(scope="session")
def type_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "type"
    return pretrain_goals(tiny(goal_source="type", belief_games=0), RunOptions(output_dir=folder), quiet=True).path
