"""Cells of a score card: measured once, shared by scenarios with the same players, solved where that is possible."""

from __future__ import annotations

import pytest

from marlab.hunt.evaluate import cells as module
from marlab.hunt.evaluate.agents import scripted
from marlab.hunt.evaluate.cells import Cells
from marlab.hunt.evaluate.command import HuntEvalConfig
from marlab.hunt.evaluate.measurements import Measurements
from marlab.hunt.evaluate.play import Cell, Starts
from marlab.hunt.evaluate.scenarios import by_name, team
from marlab.hunt.game.config import game_config
from marlab.lab.runs.rng import Rngs
from tests.hunt.helpers import small_game

CONFIG = HuntEvalConfig("NS", runs=4, steps=40, window=36, layouts=3, episodes=4, device="cpu")


@pytest.fixture
def cells() -> Cells:
    game = small_game(game_config("msh_4x4"))
    return Cells(game, Starts(game, 4, 7), CONFIG, {}, Rngs(7), True, Measurements())


def test_a_team_and_a_scenario_with_the_same_players_are_measured_once(
    cells: Cells, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, same = by_name("visit_lone_hunter"), team("2NH+NS")
    cells.play([Cell(scripted("NS"), scenario)], "")
    monkeypatch.setattr(module, "play_stream", lambda *arguments: pytest.fail("measured twice"))
    cells.play([Cell(scripted("NS"), same)], "")
    assert cells.score("NS", same).mean == cells.score("NS", scenario).mean == 5.0
    assert cells.score("NS", same).scenario == same.name != cells.score("NS", scenario).scenario


def test_best_responses_are_solved_for_one_player_among_known_rules(cells: Cells) -> None:
    lone = by_name("visit_lone_hunter")
    cells.play([Cell(scripted("RAND"), lone)], "")
    exact = cells.best_response(lone)
    assert exact is not None and exact.score.mean == 5.0 and exact.half == 0.0
    for name in ("visit_random", "visit_grim", "halves_hare"):  # two and more random players, memory, two of us
        assert cells.best_response(by_name(name)) is None


def test_self_play_is_measured_once_for_all_seeds(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    first = cells.self_play(scripted("NS"))
    assert first["over_seeds"]["reward"]["value"] == pytest.approx(2.5)  # four share the stag's ten
    monkeypatch.setattr(module, "play", lambda *arguments: pytest.fail("measured twice"))
    assert cells.self_play(scripted("NS")) == first
