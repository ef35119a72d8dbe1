"""Models of others in games: who is asked about whom, what histories change, and beliefs that feed on both."""

import pytest
import torch

from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.game.views import View
from marlab.hunt.others.at_play import LearnedLikelihoods, OtherModels
from marlab.hunt.others.belief import BeliefTracker
from marlab.hunt.others.codes import Goals
from marlab.hunt.others.moa import opponent_seats
from marlab.hunt.others.models import GoalModels, ModelSpec
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind
from tests.hunt.helpers import seeded

GAME = game_config("msh_4x4")
CODES = Goals(torch.randn(3, 4, generator=seeded(0)), torch.ones(3, 3), spread=torch.full((3, 4), 0.5))


def models_of(goals: Goals, seeds: tuple[int, ...] = (0,), observers: int = 1) -> OtherModels:
    return OtherModels(GAME, goals, 8, seeds, observers=observers, history=goals is CODES)


def test_everybody_is_seen_through_its_own_eyes():
    game = make_game(GAME)
    view = View(game, game.reset(3, seeded(1)))
    models = models_of(Goals.hunt())
    torch.nn.init.normal_(models.moa.place, generator=seeded(2))
    found, legal = models.by_goal(view)
    assert found.shape == (3, 4, 3, 2, 7) and legal.shape == (3, 4, 3, 7)
    assert opponent_seats(game).tolist() == [[1, 2, 3], [2, 3, 0], [3, 0, 1], [0, 1, 2]]
    observer, slot = 2, 1  # player 0, two places after player 2
    rows, mask, time = models.seen(view)
    given, _ = models.moa.rows(rows[:, 0], time[:, 0], torch.eye(2).expand(3, 2, 2), torch.full((3,), slot))
    torch.testing.assert_close(found[:, observer, slot], given)
    assert torch.equal(legal[:, observer, slot], mask[:, 0])


@pytest.mark.parametrize("goals", [Goals.hunt(), CODES])
def test_learned_likelihoods_feed_a_belief(goals: Goals):
    game = make_game(GAME)
    players = RulePlayers(game, [Kind.NS, Kind.NH, Kind.NS, Kind.NH])
    models = models_of(goals)
    tracker = BeliefTracker(game, LearnedLikelihoods(game, models), evidence=goals.evidence)
    state, memory = game.reset(6, seeded(0)), tracker.begin(6)
    view = View(game, state)
    actions, _ = players.act(view, players.begin(6, seeded(0)), seeded(1))
    _, outcome = game.step(state, actions)
    likelihood = tracker.likelihoods(view, outcome.executed, memory)
    logits, legal = models.by_goal(view)
    expected = logits[2, 3, 0].masked_fill(~legal[2, 3, 0], -torch.inf).softmax(-1)[:, int(outcome.executed[2, 0])]
    torch.testing.assert_close(likelihood[2, 3, 0], expected)
    after = tracker.observe(view, outcome, memory)
    assert after["belief"].shape == (6, 4, 3, goals.count)
    assert torch.allclose(after["belief"].sum(-1), torch.ones(6, 4, 3))
    if goals is CODES:
        assert not torch.equal(after["history"], memory["history"])
        begun = tracker.reset(after, torch.arange(6) < 3)
        assert begun["history"][:3].abs().sum() == 0 and torch.equal(begun["history"][3:], after["history"][3:])


def test_a_sure_history_says_what_a_goal_means_and_a_vague_one_does_not():
    models = models_of(CODES)
    code = torch.zeros(1, 2, 4)
    code[0, 0] = 7.0
    for log_var, expected in ((-8.0, code[0, 0].expand(3, 4)), (12.0, CODES.candidates)):
        code[0, 1] = log_var
        torch.testing.assert_close(models.meant(code)[0], expected, atol=0.01, rtol=0.01)


def test_pretrained_models_are_what_every_copy_begins_with():
    pretrained = GoalModels(ModelSpec(GAME, "history", 4, 8, False), seeded(3))
    models = models_of(CODES, seeds=(0, 1), observers=4)
    models.take(pretrained)
    assert models.moa.copies == 8 and models.history is not None and models.history.copies == 2
    for own, given in ((models.moa, pretrained.moa), (models.history, pretrained.history)):
        learnt = given.state_dict()
        assert all(torch.equal(w, learnt[k].expand_as(w)) for k, w in own.state_dict().items())
