"""Beliefs of planning agents beside the exact rules."""

from __future__ import annotations

from pathlib import Path

from marlab.hunt.evaluate.agents import find_agents
from marlab.hunt.evaluate.beliefs import belief_rows, evaluate_beliefs
from marlab.hunt.evaluate.card import ScoreCard
from marlab.hunt.evaluate.measurements import Measurements
from marlab.hunt.game.config import game_config
from tests.hunt.helpers import small_game

FOUR = game_config("msh_4x4")


def test_beliefs_of_planning_agents_are_told_beside_the_exact_rules(hop: Path, ppo: Path) -> None:
    """An agent that learnt nothing cannot tell players apart; the exact rules can; PPO believes nothing."""
    game = small_game(FOUR)
    found = evaluate_beliefs(game, find_agents([f"hop={hop}", f"ppo={ppo}", "NS"]), 3, Measurements(), games=24)
    assert list(found) == ["exact rules", "hop"] and list(found["hop"]) == ["0"]
    exact, flat = belief_rows(found)
    assert float(exact[4]) > 0.95 and abs(float(flat[4]) - 0.5) < 0.15  # belief in the true goal at t = 4
    assert exact[6] == "100.0%"
    card = ScoreCard("msh_4x4", ["hop"], {}, {}, beliefs=found)
    assert "Beliefs about stag hunters" in card.text() and "exact rules" in card.markdown()
