"""The shipped planner of msh_far finds out across episodes who never comes; without that memory it does not."""

from __future__ import annotations

import pytest
import torch

from marlab.hunt.evaluate.agents import find_agent
from marlab.hunt.evaluate.play import Cell, Starts, play_stream, seat_all
from marlab.hunt.evaluate.scenarios import team
from marlab.hunt.evaluate.scores import scores_of
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config

RUNS, STEPS = 8, 128


@pytest.mark.slow
def test_memory_of_earlier_episodes_pays_where_goals_show_late() -> None:
    game = make_game(game_config("msh_far"))
    agents = [find_agent(f"{name}=hop_far?trees=4{more}") for name, more in (("kept", ""), ("forgot", "&inter=no"))]
    plan = seat_all(game, [Cell(agent, team("3NH")) for agent in agents], RUNS, {})
    stream = play_stream(game, plan, Starts(game, RUNS, 0), STEPS, torch.Generator().manual_seed(0))
    kept, forgot = scores_of(plan, stream, STEPS, STEPS // 2)
    assert kept.mean > forgot.mean + 0.25
    assert kept.mean > float(kept.by_episode[:2].mean()) + 0.25  # nobody can know it at first
