"""The planning agent as a policy: seats, beliefs within and across episodes, new teams, explanations, files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn.functional import one_hot

from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.views import View
from marlab.hunt.others.codes import Goals
from marlab.hunt.others.config import PretrainGoalsConfig
from marlab.hunt.planner.agent import HopAgent, agents_of, load_hop
from marlab.hunt.planner.mind import PlannerModels, models_state
from marlab.hunt.players.policy import Team
from marlab.hunt.players.rollout import moments, play
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind
from marlab.hunt.pretraining.run import pretrain_goals
from marlab.hunt.selfplay.trainer import SelfPlayTrainer
from marlab.lab.config import to_dict
from marlab.lab.errors import UserError
from marlab.lab.runs.checkpoint import save_checkpoint
from marlab.lab.runs.run import RunOptions
from tests.hunt.helpers import seeded, small_game
from tests.hunt.hop_cases import TINY, offline, small_mind, small_training

FOUR = GameConfig()


@pytest.mark.parametrize("variant", ["hop", "hopplus", "hopplus-mcts", "hopplus-mcts-wm", "mcts-self"])
def test_every_variant_plays_and_explains(variant: str) -> None:
    game = small_game(TINY)
    mind = small_mind(variant)
    agent = HopAgent(game, mind)
    with pytest.raises(ValueError, match="no decision"):
        agent.explain()
    state, memory = game.reset(3, seeded(0)), agent.begin(3, seeded(0))
    actions, memory = agent.act(View(game, state), memory, seeded(1))
    assert bool(game.legal(state).gather(2, actions.unsqueeze(2)).all())
    told = agent.explain()
    assert told.belief.shape == (3, 2, 1, mind.count) and told.expected.shape == (3, 2, 1, 7)
    assert torch.allclose(told.plan.policy.sum(2), torch.ones(3, 2)) and torch.equal(told.actions, actions)
    assert bool(((told.stag >= 0) & (told.stag <= 1)).all()) and bool((told.line[..., 0] >= 0).all())
    assert torch.equal(told.line[..., 0], told.plan.policy.argmax(-1))  # the plan shown begins with what is done
    assert play(game, agent, 4, seeded(2)).reward.shape == (4, 2)


@pytest.mark.parametrize("variant", ["hop", "hopplus-mcts", "hopplus-mcts-wm"])
def test_followers_are_believed_in_beside_goals(variant: str) -> None:
    game, mind = small_game(TINY), small_mind(variant)
    some = torch.tensor([[0.4, 0.0, 0.1], [0.0, 0.4, 0.1]])[:, : mind.count]  # the second goal is about hares
    mind.goals = Goals(mind.goals.candidates, mind.goals.evidence, some)
    agent = HopAgent(game, mind, followers=0.5)
    known = agent.hypotheses
    assert known is not None and known.count > mind.count
    state = game.reset(3, seeded(0))
    state.cell[1, 0] = state.prey_cell[1, 0]  # in the second game player 1 stands on the stag
    view, memory = View(game, state), agent.begin(3, seeded(0))
    agent.act(view, memory, seeded(1))
    told = agent.explain()
    assert told.belief.shape == (3, 2, 1, known.count) and torch.allclose(told.belief.sum(-1), torch.ones(3, 2, 1))
    assert torch.allclose(told.follows, known.prior[known.follows].sum().expand(3, 2, 1))
    assert play(game, agent, 4, seeded(2)).reward.shape == (4, 2)
    sure = torch.zeros(3, 2, 1, known.count)
    sure[..., mind.count] = 1.0  # the first follower
    by_goal = [
        mind.predict(view, one_hot(goals[mind.count], mind.count).expand(3, 2, 1, -1).float())
        for goals in (known.alone, known.joined)
    ]
    found = mind.predict(view, sure, hypotheses=known)
    assert torch.allclose(found[1, 0], by_goal[1][1, 0])  # player 2 comes to player 1
    assert torch.allclose(found[1, 1], by_goal[0][1, 1]) and torch.allclose(found[0], by_goal[0][0])


def test_without_followers_nothing_but_goals_is_believed() -> None:
    game, mind = small_game(TINY), small_mind("hop")
    agent = HopAgent(game, mind)
    assert agent.hypotheses is None and agent.planner.hypotheses is None and agent.tracker.first is None
    assert HopAgent(game, small_mind("mcts-self"), followers=0.5).hypotheses is None  # no models that know goals


def test_only_its_own_seats_are_planned() -> None:
    game = small_game(TINY)
    agent = HopAgent(game, small_mind(), seats=[1])
    state = game.reset(5, seeded(0))
    agent.act(View(game, state), agent.begin(5, seeded(0)), seeded(1))
    told = agent.explain()
    assert not bool(told.decided[:, 0].any()) and bool(told.decided[:, 1].all())
    assert float(told.plan.visits[:, 0].sum()) == 0.0


def test_beliefs_learn_within_an_episode_and_stay_for_the_next(tmp_path: Path) -> None:
    """With pretrained models an agent tells NS from NH by their steps, expects the same next time, and can forget a
    team."""
    made = PretrainGoalsConfig(data=offline(tmp_path / "data", FOUR, 8000), goal_source="type", epochs=4, hidden=64)
    made = replace(made, batch_size=128, belief_games=0, overfit_check=False)
    models = pretrain_goals(made, RunOptions(output_dir=tmp_path / "models"), quiet=True).path
    trainer = SelfPlayTrainer(small_training(game=FOUR, load_moa=models, hidden=64))
    game = small_game(FOUR)
    agent = HopAgent(game, trainer.learner.slow, seats=[0], belief=replace(trainer.config.mind.beliefs, discount=0.9))
    rules = RulePlayers(game, [Kind.RAND, Kind.NS, Kind.NH, Kind.NH])
    team, generator = Team(game, [rules, agent], [1, 0, 0, 0]), seeded(3)
    memory = team.begin(24, generator)
    everyone = torch.ones(24, dtype=torch.bool)
    for _ in range(3):
        for moment in moments(game, team, game.reset(24, generator), memory, generator):
            memory = team.observe(moment.view, moment.outcome, moment.memory)
        memory = team.reset(memory, everyone, generator)
    prior = memory["1/belief"][:, 0, :, 0].mean(0)  # stag, about the players in seats 2, 3 and 4
    assert float(prior[0]) > 0.75 and float(prior[1:].max()) < 0.3
    own = {name[2:]: value for name, value in memory.items() if name.startswith("1/")}
    forgotten = agent.new_team(own, everyone)
    assert torch.equal(forgotten["belief"], torch.full_like(forgotten["belief"], 0.5))


def test_what_goals_are_about_is_kept() -> None:
    common = torch.tensor([[0.3, 0.2, 0.0], [0.0, 0.0, 0.5]])  # the second goal is that of hunters who wait in vain
    evidence = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    mind = PlannerModels(
        TINY, small_mind("hopplus-mcts").config, Goals(torch.randn(3, 4, generator=seeded(0)), evidence, common), [0]
    )
    told = {"game": to_dict(TINY), "config": to_dict(mind.config), "seeds": [0], "world": None, **models_state(mind)}
    assert agents_of(told, "a test").mind.goals.stag.tolist() == [1.0, 1.0, 0.0]


def test_agents_from_a_file(tmp_path: Path) -> None:
    trainer = SelfPlayTrainer(small_training(seeds="2,5"))
    trainer.iterate()
    save_checkpoint(tmp_path / "agents.pt", "hunt/hop", 1, trainer.state_dict())
    agents = load_hop(tmp_path / "agents.pt")
    assert agents.seeds == (2, 5)
    game = small_game(TINY)
    state, belief = game.reset(4, seeded(0)), torch.full((4, 2, 1, 2), 0.5)
    for seed in (2, 5):
        expected = trainer.learner.slow.some([seed]).predict(View(game, state), belief)
        found = agents.agent(game, seed).mind.predict(View(game, state), belief)
        assert torch.equal(expected, found)
    assert agents.agent(game, 5, simulations=9, trees=3).planner.config.search.simulations == 9
    agents.save(tmp_path / "more.pt", [5], trees=7)
    more = load_hop(tmp_path / "more.pt")
    assert more.seeds == (5,) and more.agent(game).planner.config.trees == 7 != agents.config.plan.trees
    both = agents.agent(game, (5, 2)).mind  # in the order asked for
    assert both.seeds == (5, 2) and torch.equal(
        both.some([2]).players.middle.weight, agents.mind.some([2]).players.middle.weight
    )
    with pytest.raises(UserError, match="no seed 7"):
        agents.agent(game, 7)
    with pytest.raises(UserError, match="were trained in a 3x3 grid"):
        agents.agent(small_game(FOUR))
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no trained planning agents"):
        load_hop(tmp_path / "empty")
