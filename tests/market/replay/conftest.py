"""A small world with logs, played once for all tests of this room."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.market.arena.play import Tournament
from marlab.market.arena.world import measured_world
from marlab.market.simulator.worlds import WorldSpec
from tests.lab.notebook.browser import browser, page

__all__ = ["browser", "page"]

NEURAL = "neu=marlab.market.agent:LitaAgentHRL(mode=neural)"


@pytest.fixture(scope="session")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tournament with one world of twelve days in it."""
    folder = tmp_path_factory.mktemp("logged")
    agents = ("marlab.market.agent:LitaAgentHRL(mode=heuristic)", "GreedyStdAgent", NEURAL, "RandomStdAgent")
    spec = WorldSpec("c000-t00-w", 3, 4, 12, (0, 0, 1, 1), agents, (False,) * 4)
    Tournament(folder).add(measured_world(spec, keep_logs=True))
    return folder
