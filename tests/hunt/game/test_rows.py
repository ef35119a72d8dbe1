"""What a network reads of a situation."""

from __future__ import annotations

import pytest
import torch

from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import GameConfig, game_config
from marlab.hunt.game.rows import FAR, Symmetries, encode, row_layout, ways, ways_size
from marlab.hunt.game.rules import STAY
from tests.hunt.helpers import placed, seeded, small_game
from tests.hunt.hop_cases import TINY


def test_rows_tell_the_shortest_ways() -> None:
    """By hand: nearer moves and distances around an obstacle, of those who are there only."""
    config = GameConfig(max_block_comp=1)
    spots = {"players": [(0, 0), (3, 3), (3, 2), None], "hares": [(0, 0), (3, 0)], "obstacles": [(0, 1)]}
    game, state = placed(config, stags=[(1, 2)], **spots)
    layout = row_layout(config, True)
    rows, _ = encode(game, state, torch.arange(4), True)
    ways = rows[0, :, layout.ways : layout.distances].view(4, 2, STAY).tolist()
    assert ways[0] == [[0, 1, 0, 0], [0, 0, 0, 0]]  # down to the stag, the right is blocked; it stands on a hare
    assert ways[1] == [[1, 0, 1, 0], [0, 0, 1, 0]]  # up or left; the nearest hare is to the left
    assert ways[3] == [[0] * STAY] * 2  # gone
    steps = rows[0, 1, layout.distances :].view(4, 2, FAR + 1)  # as player 2 sees itself, 3, 4 and 1
    assert steps[0].argmax(1).tolist() == [3, 3] and steps[1].argmax(1).tolist() == [2, 2]
    assert steps[3].argmax(1).tolist() == [3, 0] and steps.sum((1, 2)).tolist() == [2, 2, 0, 2]
    plain, _ = encode(game, state, torch.arange(4))
    assert torch.equal(rows[..., : layout.ways], plain)
    game, state = placed(config, **spots)  # no stag is left
    rows, _ = encode(game, state, torch.arange(4), True)
    assert not rows[0, 0, layout.ways : layout.ways + STAY].any()
    assert rows[0, 0, layout.distances :].sum() == 3


@pytest.mark.parametrize("paths", [False, True])
def test_turned_rows_are_the_rows_of_the_turned_game(paths: bool) -> None:
    """Turning the rows of a state and its action masks is the same as drawing the turned state."""
    game = small_game(TINY)
    state = game.reset(5, seeded(0))
    rows, legal = encode(game, state, torch.arange(2), paths)
    turns = Symmetries(row_layout(TINY, paths), "cpu")
    cells = torch.arange(9).view(3, 3)
    where = torch.rot90(cells, 1, (0, 1)).flatten().argsort()  # the turned number of every cell
    turned = state._replace(cell=where[state.cell], prey_cell=where[state.prey_cell])
    expected, mask = encode(game, turned, torch.arange(2), paths)
    assert torch.equal(rows[..., turns.rows[1]], expected)
    assert torch.equal(legal[..., turns.by_action[1]], mask)
    for which in range(len(turns)):
        action = torch.arange(game.actions)
        assert torch.equal(turns.by_action[which][turns.renamed[which]], action)


def test_ways_say_which_moves_come_nearer_and_how_close_everybody_is() -> None:
    game = make_game(game_config("msh_tiny"))  # 3x3, two players, one stag, one hare
    start = game.reset(1, seeded(0))._replace(cell=torch.tensor([[0, 5]]), prey_cell=torch.tensor([[8, 5]]))
    found = ways(game, start)[0]
    assert found.shape == (2, ways_size(game.config)) == (2, 12)
    down_and_right = [0.0, 1.0, 0.0, 1.0]
    assert found[0, :4].tolist() == down_and_right  # to the stag in the far corner
    assert found[0, 4:6].tolist() == torch.tensor([1 - 4 / FAR, 1 - 1 / FAR]).tolist()
    assert found[1, 6:10].tolist() == [0.0] * 4  # player 2 stands on the hare
    assert found[1, 10:].tolist() == torch.tensor([1.0, 1 - 3 / FAR]).tolist()  # itself first
    gone = start._replace(prey_alive=torch.tensor([[False, True]]))
    assert not ways(game, gone)[0, :, :6].any()
