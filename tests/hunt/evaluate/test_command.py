"""The score card: who sits where, what counts, and what agents that plan or learn need in it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from marlab.cli import main as cli
from marlab.hunt.evaluate.agents import find_agent, find_agents, scripted
from marlab.hunt.evaluate.beliefs import belief_rows, evaluate_beliefs
from marlab.hunt.evaluate.card import ScoreCard
from marlab.hunt.evaluate.command import EvalConfig, evaluate, write_card
from marlab.hunt.evaluate.planners import parse_settings
from marlab.hunt.evaluate.play import Cell, Plan, Starts, Stream, play_stream, seat_all
from marlab.hunt.evaluate.scenarios import SUITE, by_name, team
from marlab.hunt.evaluate.scores import scores_of
from marlab.hunt.game.config import game_config
from marlab.hunt.game.views import View
from marlab.hunt.planner.agent import HopAgent
from marlab.lab.errors import UserError
from tests.hunt.evaluate_cases import hop_run, ppo_run
from tests.hunt.helpers import seeded, small_game

FOUR = game_config("msh_4x4")


@pytest.fixture(scope="module")
def ppo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ppo_run(tmp_path_factory.mktemp("eval") / "ppo")


@pytest.fixture(scope="module")
def hop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hop_run(tmp_path_factory.mktemp("eval") / "hop")


def played(cells: list[Cell], runs: int, steps: int) -> tuple[Plan, Stream]:
    game = small_game(FOUR)
    plan = seat_all(game, cells, runs, {})
    return plan, play_stream(game, plan, Starts(game, runs, 5), steps, seeded(1))


# --- starts and seats -----------------------------------------------------------------------------------------------


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
    together = policy.mind.predict(View(game, state), policy.begin(16, seeded(0))["belief"])
    for block, seed in enumerate((0, 3)):
        here = slice(8 * block, 8 * block + 8)
        alone = agent.make(game, seed)
        assert isinstance(alone, HopAgent)
        found = alone.mind.predict(View(game, state.select(here)), alone.begin(8, seeded(0))["belief"])
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


# --- scores ---------------------------------------------------------------------------------------------------------


def test_scores_agree_with_what_is_known() -> None:
    cells = [
        Cell(scripted(name), team(text))
        for name, text in (("NS", "NS+2NH"), ("NS", "3NH"), ("NH", "3NH"), ("NH", "3NS"))
    ]
    plan, stream = played(cells, 16, 400)
    lone, hopeless, crowd, easy = scores_of(plan, stream, 400, 200)
    assert lone.mean == 5.0 and hopeless.mean == 0.0 and easy.mean == 1.0
    assert crowd.mean == pytest.approx(0.864, abs=0.03)
    assert lone.outcomes["stag_2"] == 1.0 and hopeless.outcomes["none"] == 1.0
    assert lone.episodes_to_adapt == 1 and hopeless.episodes_to_adapt is None


def test_only_the_last_steps_are_scored() -> None:
    """A partner who was let down once does not come again: hares are all that is left in the window."""
    plan, stream = played([Cell(scripted("WAIT(1)"), by_name("visit_grim"))], 32, 500)
    [score] = scores_of(plan, stream, 500, 100)
    mean = float(score.by_episode[:1].mean())
    assert score.mean < mean - 1.0
    late = stream.end > 400
    focal = plan.focal[stream.game[late]]
    paid = (stream.reward[late] * focal).sum(1)
    by_run = [float(paid[stream.game[late] == run].mean()) for run in range(32)]
    assert score.per_run == pytest.approx(by_run)


def test_the_card_knows_its_scale(tmp_path: Path) -> None:
    config = EvalConfig(
        "RAND", ("NS", "NH"), parts=("scenarios", "cross-play", "self-play"), runs=8, steps=200, window=100,
        scenarios=("visit_lone_hunter", "visit_all_hare", "self_play"), layouts=20, episodes=20, device="cpu",
    )  # fmt: skip
    card = evaluate(config)
    lone, hares, _ = card.blocks[0].lines
    for line in (lone, hares):
        share = line.share("RAND")
        assert share is not None and share.value == 0.0
    assert lone.reference.agent == "best response" and lone.reference.mean == 5.0
    best, regret = lone.share("NS"), lone.regret("NS")
    assert best is not None and best.value == 1.0 and regret is not None and regret.value == 0.0
    short = hares.regret("NH")
    assert short is not None and 0.05 < short.value < 0.25  # hare catchers in each other's way
    assert card.cross["NS"]["NH"].mean == 0.0 and card.cross["NH"]["NS"].mean == 1.0
    assert card.self_play["NS"]["over_seeds"]["reward"]["value"] == pytest.approx(2.5)
    write_card(card, tmp_path)
    assert "NaN" not in (tmp_path / "scorecard.json").read_text()  # JSON knows no such number
    kept = json.loads((tmp_path / "scorecard.json").read_text())
    assert kept["blocks"][0]["scenarios"][0]["agents"]["NS"]["score"] == 5.0
    page = (tmp_path / "scorecard.md").read_text()
    assert all((tmp_path / file).is_file() and file in page for file in card.figures.values())
    assert "visit_lone_hunter" in card.text() and "headline, NS" in card.text()


def test_rows_that_use_more_than_learned_models_are_labelled_and_no_headline(hop: Path) -> None:
    config = EvalConfig(
        f"plain={hop}", (f"helped={hop}?rollout=1&simulations=1&trees=1",), parts=("scenarios",), runs=4, steps=36,
        window=36, scenarios=("visit_all_hare",), layouts=0, device="cpu",
    )  # fmt: skip
    card = evaluate(config)
    assert card.uses == {"plain": "", "helped": "rule-based rollouts"}
    assert list(card.headline) == ["plain"]
    assert "helped [rule-based rollouts]" in card.text()


# --- agents -----------------------------------------------------------------------------------------------------------


def test_trained_agents_play_and_are_met(ppo: Path, hop: Path) -> None:
    config = EvalConfig(
        f"hop={hop}", (f"ppo={ppo}:3",), parts=("cross-play",), runs=4, steps=40, window=40, device="cpu"
    )
    card = evaluate(config)
    assert set(card.cross) == {"hop", "ppo"}
    assert card.cross["hop"]["ppo"].episodes > 0 and card.cross["ppo"]["hop"].by_seed.keys() == {3}


def test_beliefs_of_planning_agents_are_told_beside_the_exact_rules(hop: Path, ppo: Path) -> None:
    """An agent that learnt nothing cannot tell players apart; the exact rules can; PPO believes nothing."""
    game = small_game(FOUR)
    found = evaluate_beliefs(game, find_agents([f"hop={hop}", f"ppo={ppo}", "NS"]), 3, games=64)
    assert list(found) == ["exact rules", "hop"] and list(found["hop"]) == ["0"]
    exact, flat = belief_rows(found)
    assert float(exact[4]) > 0.95 and abs(float(flat[4]) - 0.5) < 0.15  # belief in the true goal at t = 4
    assert exact[6] == "100.0%"
    card = ScoreCard("msh_4x4", ["hop"], {}, {}, beliefs=found)
    assert "Beliefs about NS and NH" in card.text() and "exact rules" in card.markdown()


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
    assert not agent.greedy
    for wrong, told in (("depth=3", "not a setting"), ("trees=0", "from 1"), ("inter=maybe", "yes or no")):
        with pytest.raises(UserError, match=told):
            parse_settings(wrong)


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


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({}, "Name an agent"),
        ({"agent": "NS", "game": "chess"}, "not a game"),
        ({"agent": "NS", "runs": 1}, "runs is 1"),
        ({"agent": "NS", "window": 10}, "window is 10"),
        ({"agent": "NS", "parts": ()}, "parts is empty"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, object], told: str) -> None:
    with pytest.raises(UserError, match=told):
        EvalConfig(**wrong)  # type: ignore[arg-type]


def test_what_does_not_fit_together_is_refused_before_any_work(ppo: Path) -> None:
    small = {"runs": 4, "steps": 40, "window": 40, "device": "cpu"}
    with pytest.raises(UserError, match="4 players"):
        evaluate(EvalConfig("NS", game="msh_2p_4x4", **small))  # type: ignore[arg-type]
    with pytest.raises(UserError, match="4x4 grid"):
        evaluate(EvalConfig(str(ppo), game="msh_8x8_b5", **small))  # type: ignore[arg-type]
    with pytest.raises(UserError, match="TEAM=RUN"):
        evaluate(EvalConfig("NS", references=("3NS",), **small))  # type: ignore[arg-type]


def test_a_trained_reference_sets_the_scale(ppo: Path) -> None:
    config = EvalConfig(
        "NH", parts=("scenarios",), scenarios=("visit_random",), references=(f"3RAND={ppo}",), runs=8, steps=120,
        window=80, layouts=0, device="cpu",
    )  # fmt: skip
    [line] = evaluate(config).blocks[0].lines
    assert line.reference.mean == max(line.reference.mean, line.scores["NH"].mean, line.random.mean)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "hunt eval NH --parts scenarios --scenarios visit_all_hare --runs 4 --steps 40 --window 40 --layouts 2"
    assert cli([*words.split(), "--no-figures", "--out", str(tmp_path)]) == 0
    assert "visit_all_hare" in capsys.readouterr().out
    assert (tmp_path / "scorecard.md").is_file()
    assert cli(["hunt", "eval"]) == 2


def test_every_scenario_runs() -> None:
    plan, stream = played([Cell(scripted("MIX(0.5)"), scenario) for scenario in SUITE], 4, 60)
    scores = scores_of(plan, stream, 60, 40)
    assert all(np.isfinite(score.mean) for score in scores) and len(scores) == len(SUITE)
