"""The shortest ways as numbers."""

from __future__ import annotations

import torch

from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.game.ways import FAR, ways, ways_size
from tests.hunt.helpers import seeded


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


def test_seats_may_differ_from_game_to_game() -> None:
    game = make_game(game_config("msh_8x8_b5"), seeded(1), maps=8)
    state = game.reset(6, seeded(0))
    seats = torch.randint(4, (6, 2), generator=seeded(3))
    everybody = ways(game, state)
    assert torch.equal(ways(game, state, seats), everybody[torch.arange(6).unsqueeze(1), seats])
