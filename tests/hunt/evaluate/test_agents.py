"""Players by name, and names that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from marlab.hunt.evaluate.agents import find_agent, find_agents, parse_settings
from marlab.hunt.evaluate.play import Cell, Starts, play_stream, seat_all
from marlab.hunt.evaluate.scenarios import team
from marlab.hunt.evaluate.scores import scores_of
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.game.views import View
from marlab.hunt.planner.agent import FOLLOWERS, LOYALTY, HopAgent
from marlab.lab.errors import UserError
from tests.hunt.helpers import seeded, small_game


def test_wrong_agents_are_told_in_a_sentence(ppo: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"FOX.*not a player"):
        find_agent("FOX")
    with pytest.raises(UserError, match="There is no run"):
        find_agent(str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match="There is no seed 9"):
        find_agent(f"{ppo}:9")
    with pytest.raises(UserError, match="only planning agents take"):
        find_agent(f"{ppo}?trees=2")
    with pytest.raises(UserError, match="Two agents are called 'NS'"):
        find_agents(["NS", "NS"])
    with pytest.raises(UserError, match="snowdrift"):
        find_agent("ND")


FOUR = game_config("msh_4x4")


def test_planning_agents_decide_in_their_own_seats_only(hop: Path) -> None:
    game = small_game(FOUR)
    plan = seat_all(game, [Cell(find_agent(str(hop)), team("3NS"))], 4, {})
    [planner] = [seat.policy for seat in plan.seats if isinstance(seat.policy, HopAgent)]
    generator = seeded(0)
    planner.act(View(game, game.reset(4, generator)), planner.begin(4, generator), generator)
    assert torch.equal(planner.explain().decided, plan.focal)


def test_settings_of_planning_agents_change_them(hop: Path) -> None:
    game = small_game(FOUR)
    agent = find_agent(f"{hop}?simulations=3&trees=1&discount=0.5&inter=no&greedy=no").make(game, 0)
    assert isinstance(agent, HopAgent)
    assert agent.planner.config.search.simulations == 3 and agent.planner.config.trees == 1
    assert agent.tracker.config.discount == 0.5 and not agent.tracker.config.inter and agent.tracker.config.intra
    assert not agent.greedy and agent.hypotheses is not None and agent.planner.loyalty == LOYALTY
    assert agent.hypotheses.prior[agent.hypotheses.follows].sum() == FOLLOWERS / 2  # half of the goals are about hares
    assert agent.tracker.config.lasting == 0  # as trained
    lasting = find_agent(f"{hop}?lasting=0.4").make(game, 0)
    assert isinstance(lasting, HopAgent) and lasting.tracker.config.lasting == 0.4
    assert lasting.hypotheses is not None and len(lasting.tracker.aims) == 3  # the stag, hares, to follow
    plain = find_agent(f"{hop}?followers=0&fates=yes&loyalty=0").make(game, 0)
    assert isinstance(plain, HopAgent) and plain.hypotheses is None and plain.planner.loyalty == 0
    loyal = find_agent(f"{hop}?followers=0&fates=yes&loyalty=2").make(game, 0)
    assert isinstance(loyal, HopAgent) and loyal.planner.loyalty == 2 and not loyal.planner.depend
    cases = (("depth=3", "not a setting"), ("trees=0", "from 1"), ("inter=maybe", "yes or no"),
             ("followers=1", "below 1"), ("loyalty=-1", "from 0"))  # fmt: skip
    for wrong, told in cases:
        with pytest.raises(UserError, match=told):
            parse_settings(wrong)


@pytest.mark.long
def test_planners_that_reckon_with_followers_earn_more_among_exploiters() -> None:
    names = ("old=hop_4x4?followers=0&fates=yes&loyalty=0", "new=hop_4x4")
    cells = [Cell(find_agent(name), team("3EXPL")) for name in names]
    game, runs, steps = make_game(game_config("msh_4x4")), 12, 150
    plan = seat_all(game, cells, runs, {})
    stream = play_stream(game, plan, Starts(game, runs, 5), steps, seeded(0))
    old, new = (score.mean for score in scores_of(plan, stream, steps, steps))
    assert new > old + 0.2
