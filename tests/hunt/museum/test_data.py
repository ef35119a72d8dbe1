"""Exhibits about data and losses show what they say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from marlab.hunt.game.config import game_config
from marlab.hunt.game.rules import RIGHT, STAY, UP
from marlab.hunt.game.views import View
from marlab.hunt.museum.command import MuseumConfig
from marlab.hunt.museum.data import TWICE_PERFECT, moved
from marlab.hunt.museum.run import visit
from marlab.lab.runs.run import RunOptions
from tests.hunt.helpers import placed

FOUR = game_config("msh_4x4")


def test_the_floor_of_a_double_softmax_is_the_loss_of_a_perfect_predictor() -> None:
    certain = torch.eye(7)
    loss = torch.nn.functional.cross_entropy(certain, torch.arange(7))
    assert float(loss) == pytest.approx(TWICE_PERFECT, abs=1e-6)
    assert abs(TWICE_PERFECT - 1.165) < 1e-3


def test_motion_is_read_off_the_planes() -> None:
    game, state = placed(FOUR, players=[(1, 1), (2, 2), (0, 0), None], stags=[(3, 3)], hares=[(0, 3)])
    before = View(game, state).board
    after, _ = game.step(state, torch.tensor([[UP, RIGHT, STAY, STAY]]))
    assert moved(before, View(game, after).board).tolist() == [[UP, RIGHT, -1, -1]]


def test_the_original_remembers_successes_only_and_one_player_learns(tmp_path: Path) -> None:
    run = visit(MuseumConfig("successes-only", rows=1500), RunOptions(output_dir=tmp_path / "run"), quiet=True)
    found = json.loads((run.path / "museum.json").read_text())["successes-only"]
    assert found["appeared"]
    shares = found["figures"]["left_with"]
    assert shares["all steps"][0] > 0.3 and shares["steps that the original kept"][0] == 0
    assert sum(shares["steps that the original kept"]) == pytest.approx(1)
