import pytest
import torch

from marlab.hunt.game.build import restore
from marlab.hunt.game.config import game_config
from marlab.hunt.game.rules import ABSENT, HUNT_HARE, HUNT_STAG, STAY
from marlab.hunt.game.symmetry import Symmetry, symmetries
from marlab.hunt.game.views import View
from marlab.hunt.players.seats import Kind
from marlab.hunt.pretraining.floor import rule_rows
from tests.hunt.offline import offline_data


def test_a_square_has_eight_and_a_rectangle_four():
    assert len(set(symmetries(4, 4))) == 8 and len(set(symmetries(4, 6))) == 4
    assert symmetries(4, 4)[0] == Symmetry(0, False)


def test_tables_are_permutations_that_leave_hunts_alone():
    for turn in symmetries(4, 4):
        table = turn.action_table()
        assert sorted(table.tolist()) == list(range(8))
        assert table[[STAY, HUNT_STAG, HUNT_HARE, ABSENT]].tolist() == [STAY, HUNT_STAG, HUNT_HARE, ABSENT]
    assert Symmetry(0, False).action_table().tolist() == list(range(8))
    assert Symmetry(0, True).action_table()[:4].tolist() == [0, 1, 3, 2], "mirrored, left is right"
    assert Symmetry(2, False).action_table()[:4].tolist() == [1, 0, 3, 2]


@pytest.mark.parametrize("turn", symmetries(4, 4))
def test_the_turned_game_is_the_same_game(turn: Symmetry):
    """Masks, steps and rule-based choices of turned rows are the turned ones of the rows."""
    config, rows = game_config("msh_4x4"), offline_data().rows
    rows = rows.select(torch.arange(0, rows.size, 23))
    turned = rows._replace(obs=turn.planes(rows.obs))
    game, state = restore(config, turned.obs, rows.t)
    assert torch.equal(View(game, state).mask[:, 0], turn.mask(rows.mask))
    after, outcome = game.step(state, turn.actions(rows.joint_a))
    assert torch.equal(outcome.reward[:, 0], rows.r)
    assert torch.equal(View(game, after).grid[:, 0], turn.planes(rows.next_obs))
    for kind in (Kind.NS, Kind.NH):
        straight = rule_rows(config, rows, [kind])[:, 0]
        assert torch.allclose(rule_rows(config, turned, [kind])[:, 0][:, turn.action_table()[:7]], straight)
