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
from marlab.hunt.museum.data import TWICE_PERFECT, LegacyMoaBuffer, episodes_of, moved
from marlab.hunt.museum.run import visit
from marlab.lab.runs.run import RunOptions
from tests.hunt.helpers import placed
from tests.hunt.offline import offline_data

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


def test_legacy_buffer_keeps_only_rewarded_trajectories_and_labels_all_their_steps() -> None:
    part = offline_data().part("train")
    buffer = LegacyMoaBuffer(1, 4, capacity=10**9)
    for sequences in episodes_of(part):
        assert buffer.end_episode(part, sequences) == {}
    for slot, model in enumerate(buffer.model_ids):
        rows = torch.cat(buffer.rows[slot])
        assert len(rows) == len(buffer.labels[slot]) and (part.rows.player[rows] == model).all()
        assert (part.rows.outcome[rows] > 0).all(), "failed hunts, the informative case, are never seen"
        assert torch.equal(torch.tensor(buffer.labels[slot]) + 1, part.rows.outcome[rows])
    own = part.rows.player != 0
    assert sum(len(x) for x in buffer.labels) < int(own.sum())


def test_legacy_counters() -> None:
    part = offline_data().part("train")
    buffer = LegacyMoaBuffer(2, 4)
    assert buffer.model_ids == [0, 2, 3]
    stag = hare = 0.0
    for sequences in episodes_of(part)[:30]:
        outcome = int(part.rows.outcome[part.offsets[sequences[0]]])
        if outcome:
            stag, hare = 0.995 * stag + (outcome == 1), 0.995 * hare + (outcome == 2)
        buffer.end_episode(part, sequences)
    assert (buffer.stag_times[0], buffer.hare_times[0]) == pytest.approx((stag, hare))


@pytest.mark.parametrize("my_id", [1, 3])
def test_only_player_1_ever_learns_in_the_original(my_id: int) -> None:
    part = offline_data().part("train")
    buffer = LegacyMoaBuffer(my_id, 4, capacity=200)
    updates = 0
    for sequences in episodes_of(part):
        due = buffer.end_episode(part, sequences)
        updates += len(due)
        for rows, labels in due.values():
            assert len(rows) == len(labels) > 200
    assert (updates > 0) == (my_id == 1)
    assert all(len(x) <= 200 + 35 for x in buffer.labels), "the others throw theirs away"
