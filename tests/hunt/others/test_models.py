"""Models come back from their file as they were, or are refused in one sentence."""

from pathlib import Path

import pytest

from marlab.hunt.game.config import game_config
from marlab.hunt.others.models import load_goal_models
from marlab.lab.runs.checkpoint import CheckpointError


def test_models_come_back_as_they_were(history_run: Path, type_run: Path):
    loaded = load_goal_models(history_run, game_config("msh_4x4"), goal_width=16)
    assert loaded.spec.goal_source == "history" and loaded.goals().candidates.shape == (8, 16)
    assert loaded.codebook is not None and loaded.codebook.outcome.shape == (3, 8)
    assert not any(p.requires_grad for p in loaded.models.parameters())
    typed = load_goal_models(type_run, goal_width=2)
    assert typed.codebook is None and typed.goals().candidates.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    "asked, sentence",
    [
        ({"game": game_config("msh_8x8_b5")}, r"another game \(msh_4x4\): their height is 4, expected 8"),
        ({"game": game_config("msh_2p_4x4")}, "their players is 4, expected 2"),
        ({"goal_width": 16}, "take goals of width 2 .* expected width 16"),
    ],
)
def test_mismatched_models_are_refused_in_one_sentence(type_run: Path, asked: dict, sentence: str):
    with pytest.raises(CheckpointError, match=sentence):
        load_goal_models(type_run, **asked)
