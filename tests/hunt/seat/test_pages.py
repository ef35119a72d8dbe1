"""The page offers what the game knows."""

from __future__ import annotations

from pathlib import Path

from marlab.hunt.game.rules import ACTION_NAMES
from marlab.hunt.seat import game, pages
from marlab.hunt.watch.words import WORDS


def test_the_page_names_the_teams_and_moves_of_the_game() -> None:
    assert set(pages.TEAMS) == set(game.TEAMS)
    assert tuple(ACTION_NAMES[: len(pages.ACTIONS)]) == pages.ACTIONS
    data = pages.play(Path()).panels[0].data
    assert all(f"seat.team_{team}" in WORDS["en"] for team in data["teams"])
