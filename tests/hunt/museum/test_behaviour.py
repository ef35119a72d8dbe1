"""Players with exact values act as expected."""

from __future__ import annotations

import pytest

from marlab.hunt.game.config import game_config
from marlab.hunt.game.rules import HUNT_HARE, HUNT_STAG, RIGHT, STAY
from marlab.hunt.game.views import View
from marlab.hunt.museum.behaviour import BETAS, ENTROPIES, ENTROPY_TOLERANCE, ValuePlayers, behaviour
from tests.hunt.helpers import placed, seeded, small_game

FOUR = game_config("msh_4x4")


def test_values_are_exact() -> None:
    game, state = placed(FOUR, players=[(0, 0), (0, 2), (3, 3), (3, 3)], stags=[(3, 3)], hares=[(0, 2)])
    hare = ValuePlayers(game, 1.0, "hare").values(View(game, state))[0]
    assert hare[0, RIGHT].item() == pytest.approx(0.95**2) and hare[0, STAY].item() == pytest.approx(0.95**3)
    assert hare[1, HUNT_HARE].item() == 1.0
    hope = ValuePlayers(game, 1.0, "stag").values(View(game, state))[0]
    assert hope[2, HUNT_STAG].item() == 5.0  # somebody else stands there too
    assert hope[0, RIGHT].item() == pytest.approx(0.95 * max(0.95, 5 * 0.95**5))


@pytest.mark.parametrize("place", [2, 5])
def test_behaviour_has_the_expected_entropy(place: int) -> None:
    game = small_game(FOUR)
    found = behaviour(game, ValuePlayers(game, BETAS[place], "hare"), 384, seeded(3))
    assert found.entropy == pytest.approx(ENTROPIES[place], abs=ENTROPY_TOLERANCE)
    scaled = behaviour(game, ValuePlayers(game, BETAS[place], "hare", scaled=True), 64, seeded(3))
    assert scaled.entropy < found.entropy - 0.2
