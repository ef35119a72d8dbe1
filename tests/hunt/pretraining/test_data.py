"""What models of others learn from: goals of rows, and rows that must not be there."""

import pytest
import torch

from marlab.hunt.data.legacy import with_rows_after_exit
from marlab.hunt.game.config import game_config
from marlab.hunt.players.seats import Kind
from marlab.hunt.pretraining.data import goal_data
from tests.hunt.offline import offline_data

GAME = game_config("msh_4x4")


def test_training_data_refuses_rows_of_players_who_left():
    part = with_rows_after_exit(offline_data().part("validation"), 4)
    with pytest.raises(ValueError, match="players who had left"):
        goal_data(GAME, part, "type", 10, "cpu")
    clean = offline_data().part("validation")
    faulty = goal_data(GAME, clean, "type", 10, "cpu", rows_after_exit=True)
    assert faulty.rows > 1.3 * clean.rows.size


def test_goals_of_rows():
    part = offline_data(rand_share=0.2).part("all")
    by_type = goal_data(GAME, part, "type", 10, "cpu").goal
    kinds = part.rows.type
    assert (by_type[kinds == Kind.NS] == torch.tensor([1.0, 0.0])).all()
    assert (by_type[kinds == Kind.RAND] == 0.5).all()
    by_outcome = goal_data(GAME, part, "outcome", 10, "cpu").goal
    assert (by_outcome[part.rows.outcome == 2] == torch.tensor([0.0, 1.0])).all()
    assert (by_outcome[part.rows.outcome == 0] == 0.5).all(), "what caught nothing tells nothing, whatever its type"
