"""Beliefs of planning agents beside the exact rules."""

from __future__ import annotations

from pathlib import Path

from marlab.hunt.evaluate.agents import find_agents
from marlab.hunt.evaluate.beliefs import EXACT, belief_rows, beliefs_of, believes
from marlab.hunt.evaluate.card import ScoreCard
from marlab.hunt.game.config import game_config
from tests.hunt.helpers import small_game

FOUR = game_config("msh_4x4")


def test_beliefs_of_planning_agents_are_told_beside_the_exact_rules(hop: Path, ppo: Path) -> None:
    """An agent that learnt nothing cannot tell players apart; the exact rules can; PPO believes nothing."""
    game = small_game(FOUR)
    planner, *others = find_agents([f"hop={hop}", f"ppo={ppo}", "NS"])
    assert believes(planner.make(game, 0)) and not any(believes(agent.make(game, 0)) for agent in others)
    found = {EXACT: {"0": beliefs_of(game, None, 0, 3, 24)}, "hop": {"0": beliefs_of(game, planner, 0, 3, 24)}}
    exact, flat = belief_rows(found)
    assert float(exact[4]) > 0.95 and abs(float(flat[4]) - 0.5) < 0.15  # belief in the true goal at t = 4
    assert exact[6] == "100.0%"
    card = ScoreCard("msh_4x4", ["hop"], {}, beliefs=found)
    assert "Beliefs about stag hunters" in card.text() and "exact rules" in card.markdown()
