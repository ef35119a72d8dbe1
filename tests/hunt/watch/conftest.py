"""One episode with a planning agent, recorded once for all tests of this room."""

from __future__ import annotations

import pytest

from marlab.hunt.evaluate.agents import find_agent, scripted
from marlab.hunt.game.config import game_config
from marlab.hunt.watch.record import Episode, record
from tests.hunt.evaluate_cases import hop_run
from tests.hunt.helpers import seeded, small_game


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Episode:
    """A planning agent in seat 2 among rules."""
    hop = find_agent(str(hop_run(tmp_path_factory.mktemp("watch") / "hop")))
    game = small_game(game_config("msh_4x4"))
    agents = [scripted("NS"), hop, scripted("NH"), scripted("RAND")]
    return record(game, agents, [game.reset(1, seeded(k)) for k in range(2)], seeded(5), "msh_4x4")
