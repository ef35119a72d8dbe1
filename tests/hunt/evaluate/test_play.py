"""Who sits where, and streams of whole episodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from marlab.hunt.evaluate.agents import find_agent, scripted
from marlab.hunt.evaluate.play import Cell, Starts, places, play_stream, seat_all
from marlab.hunt.evaluate.scenarios import SUITE, by_name, team
from marlab.hunt.evaluate.scores import scores_of
from marlab.hunt.game.config import game_config
from marlab.hunt.game.views import View
from marlab.hunt.planner.agent import HopAgent
from marlab.hunt.players.rollout import HARE
from tests.hunt.evaluate_cases import hop_run, played
from tests.hunt.helpers import seeded, small_game

FOUR = game_config("msh_4x4")


def test_an_episode_of_a_run_starts_alike_whoever_asks_and_when() -> None:
    game = small_game(game_config("msh_8x8_b5"))
    one, other = Starts(game, 6, 9), Starts(game, 6, 9)
    other.at(torch.tensor([5]), torch.tensor([70]))  # asked for late episodes first
    runs, episodes = torch.tensor([0, 3, 3]), torch.tensor([0, 2, 40])
    for a, b in zip(one.at(runs, episodes), other.at(runs, episodes)):
        assert torch.equal(a, b)
    again = one.at(torch.tensor([3]), torch.tensor([2]))
    assert torch.equal(again.cell[0], one.at(runs, episodes).cell[1])
    assert not torch.equal(one.at(runs[:1], episodes[:1]).prey_cell, Starts(game, 6, 10).at(runs[:1], episodes[:1])[3])


def test_focal_seats_rotate_and_every_seat_is_taken_once() -> None:
    cells = [Cell(scripted("NS"), by_name("host_hare")), Cell(scripted("WAIT(3)"), team("NS+NH+RAND"))]
    plan = seat_all(small_game(FOUR), cells, 8, {})
    taken = torch.zeros(16, 4)
    for seat in plan.seats:
        taken[seat.games] += seat.seats.float()
    assert bool((taken == 1).all())
    assert plan.focal[:8].sum(1).tolist() == [3] * 8 and plan.focal[8:].sum(1).tolist() == [1] * 8
    assert [row.nonzero().item() for row in plan.focal[8:]] == [0, 1, 2, 3] * 2  # the lone focal player moves on
    assert len(plan.seats) == 4  # NS plays on both sides and is one policy


@pytest.mark.parametrize("runs", [8, 12])
def test_who_keeps_what_it_wants_wants_the_same_whoever_plays(runs: int) -> None:
    """And as often as its share says: an agent alone, beside another, and in a larger company."""
    game = small_game(FOUR)
    wants = []
    for agents in (["NS"], ["NH"], ["NS", "NH"]):
        plan = seat_all(game, [Cell(scripted(name), team("KEEP(0.25)+2NH")) for name in agents], runs, {})
        stream = play_stream(game, plan, Starts(game, runs, 5), 100, seeded(len(agents)))
        place = places(plan.run[stream.game], 4)
        hares = ((stream.outcome == HARE) & (place == 1)).any(1)  # caught by the one that keeps what it wants
        caught = torch.bincount(stream.game[hares], minlength=len(plan.run)) > 0
        wants += caught.view(-1, runs).tolist()
    assert all(one == wants[0] for one in wants) and sum(wants[0]) == 0.75 * runs


def test_training_seeds_share_the_runs_and_meet_every_seat(ppo: Path) -> None:
    plan = seat_all(small_game(FOUR), [Cell(find_agent(str(ppo)), team("3NH"))], 16, {})
    for seed in (0, 3):
        mine = plan.seed == seed
        assert int(mine.sum()) == 8
        assert plan.focal[mine].any(0).all()


def test_planning_seeds_play_side_by_side_as_they_would_alone(tmp_path: Path) -> None:
    """One policy for all seeds: blocks of games, every seed in its own runs and with its own networks."""
    agent = find_agent(str(hop_run(tmp_path / "hop", "0,3")))
    game = small_game(FOUR)
    plan = seat_all(game, [Cell(agent, team("3NH")), Cell(agent, team("3NS"))], 8, {})
    planner = next(seat for seat in plan.seats if isinstance(seat.policy, HopAgent))
    assert len(planner.games) == 16 and not planner.whole
    assert plan.seed[planner.games].tolist() == [0] * 8 + [3] * 8
    assert torch.equal(planner.seats, plan.focal[planner.games])
    policy = planner.policy
    assert isinstance(policy, HopAgent)
    state = game.reset(16, seeded(2)).select(planner.games)
    together = policy.mind.predict(View(game, state), policy.begin(16, seeded(0))["belief"], None, policy.hypotheses)
    for block, seed in enumerate((0, 3)):
        here = slice(8 * block, 8 * block + 8)
        alone = agent.make(game, seed)
        assert isinstance(alone, HopAgent)
        found = alone.mind.predict(
            View(game, state.select(here)), alone.begin(8, seeded(0))["belief"], None, alone.hypotheses
        )
        torch.testing.assert_close(together[here], found)
    with pytest.raises(ValueError, match="blocks"):
        policy.begin(7, seeded(0))
    uneven = seat_all(game, [Cell(agent, team("3NH"))], 12, {})  # two rounds of seats for one seed, one for the other
    assert sorted(len(s.games) for s in uneven.seats if isinstance(s.policy, HopAgent)) == [4, 8]


def test_a_stream_is_made_of_whole_episodes() -> None:
    _, stream = played([Cell(scripted("NH"), team("NS+2NH")), Cell(scripted("RAND"), team("3MIX(0.5)"))], 4, 150)
    for game in range(8):
        mine = stream.game == game
        assert stream.episode[mine].tolist() == list(range(int(mine.sum())))
        assert stream.length[mine].cumsum(0).tolist() == stream.end[mine].tolist()
    assert bool((stream.reward.sum(1) <= 12.0001).all()) and int(stream.length.max()) <= FOUR.final_time
    caught = stream.outcome > 0
    assert bool((stream.reward[caught] > 0).all()) and bool((stream.reward[~caught] == 0).all())


def test_every_scenario_runs() -> None:
    plan, stream = played([Cell(scripted("MIX(0.5)"), scenario) for scenario in SUITE], 4, 60)
    scores = scores_of(plan, stream, 60, 40)
    assert all(np.isfinite(score.mean) for score in scores) and len(scores) == len(SUITE)
