import math

import pytest
import torch

from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.game.views import View
from marlab.hunt.others.belief import BeliefTracker
from marlab.hunt.others.moa import (
    Moa,
    MoaLikelihoods,
    action_loss,
    averaged_copy,
    balance_weights,
    others_of,
    refuse_probabilities,
)
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind
from tests.hunt.helpers import seeded
from tests.hunt.offline import offline_data

GAME = game_config("msh_4x4")


def some_rows(count: int, width: int = 2) -> tuple[torch.Tensor, ...]:
    rows = offline_data().rows
    goals = torch.randn(count, 3, width, generator=seeded(1))
    return rows.obs[:count], rows.t[:count] / 35, goals, torch.arange(count) % 3


# --- networks -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [True, False])
def test_rows_and_pairs_give_the_same_answers(shared: bool):
    moa = Moa(GAME, 2, shared=shared, generator=seeded(0))
    planes, time, goals, slot = some_rows(12)
    given, free = moa.rows(planes, time, goals, slot)
    assert given.shape == (12, 3, 7) and free.shape == (12, 7)
    by_slot = [x.view(4, 3, *x.shape[1:]).transpose(0, 1) for x in (planes, time, goals)]
    pairs, pairs_free = moa(*by_slot)  # [3, 4, ...]
    assert torch.allclose(pairs.transpose(0, 1).flatten(0, 1), given, atol=1e-5)
    assert torch.allclose(pairs_free.transpose(0, 1).flatten(0, 1), free, atol=1e-5)
    other, _ = moa.rows(planes, time, goals, (slot + 1) % 3)
    assert not torch.allclose(other, given, atol=1e-6), "the models of different others are different models"


def test_goals_are_told_apart_and_the_free_head_sees_none():
    moa = Moa(GAME, 2, shared=True, generator=seeded(0))
    planes, time, goals, slot = some_rows(6)
    given, free = moa.rows(planes, time, goals, slot)
    alone, same_free = moa.rows(planes, time, goals[:, 1:2], slot)
    assert torch.allclose(alone[:, 0], given[:, 1], atol=1e-6) and torch.equal(free, same_free)
    assert not torch.allclose(given[:, 0], given[:, 1])


def test_a_model_without_goals():
    moa = Moa(GAME, 0, shared=False, generator=seeded(0))
    planes, time, _, slot = some_rows(7)
    given, free = moa.rows(planes, time, torch.zeros(7, 1, 0), slot)
    assert given.shape == (7, 1, 7) and torch.equal(given[:, 0], free)


@pytest.mark.parametrize("shared", [True, False])
def test_of_view_looks_at_the_right_player_through_its_own_eyes(shared: bool):
    game = make_game(GAME)
    view = View(game, game.reset(3, seeded(1)))
    moa = Moa(GAME, 2, shared=shared, generator=seeded(0))
    found = moa.of_view(view, torch.eye(2))
    assert found.shape == (3, 4, 3, 2, 7)
    assert others_of(game).tolist() == [[1, 2, 3], [2, 3, 0], [3, 0, 1], [0, 1, 2]]
    observer, slot = 2, 1  # player 0, two places after player 2
    goals = torch.eye(2).expand(3, 2, 2)
    given, _ = moa.rows(view.grid[:, 0], view.time, goals, torch.full((3,), slot))
    legal = view.mask[:, 0].unsqueeze(1).expand(-1, 2, -1)
    assert torch.allclose(found[:, observer, slot][legal], given[legal], atol=1e-5)
    assert (found[:, observer, slot].softmax(-1)[~legal] == 0).all()


def test_learned_likelihoods_feed_a_belief():
    game = make_game(GAME)
    players = RulePlayers(game, [Kind.NS, Kind.NH, Kind.NS, Kind.NH])
    moa = Moa(GAME, 2, shared=True, generator=seeded(0))
    source = MoaLikelihoods(game, moa, torch.eye(2))
    state = game.reset(6, seeded(0))
    view = View(game, state)
    actions, _ = players.act(view, players.begin(6, seeded(0)), seeded(1))
    _, outcome = game.step(state, actions)
    likelihood = source(view, outcome.executed)
    expected = moa.of_view(view, torch.eye(2)).softmax(-1)[2, 3, 0, :, int(outcome.executed[2, 0])]
    assert torch.allclose(likelihood[2, 3, 0], expected)
    tracker = BeliefTracker(game, source)
    memory = tracker.observe(view, outcome, tracker.begin(6))
    assert memory["belief"].shape == (6, 4, 3, 2)
    assert torch.allclose(memory["belief"].sum(-1), torch.ones(6, 4, 3))
    with pytest.raises(ValueError, match="width 16"):
        MoaLikelihoods(game, moa, torch.zeros(8, 16))


def test_averaged_weights_follow_fast_at_first_and_slowly_later():
    model = torch.nn.Linear(1, 1, bias=False)
    average = averaged_copy(model)
    with torch.no_grad():
        model.weight.fill_(0.0)
        average.update_parameters(model)  # the first step copies
        model.weight.fill_(1.0)
        average.update_parameters(model)
        assert average.module.weight.item() == pytest.approx(1 - 2 / 11)
        average.n_averaged.fill_(100_000)
        average.module.weight.fill_(0.0)
        average.update_parameters(model)
    assert average.module.weight.item() == pytest.approx(0.005, rel=1e-3)


# --- the loss -----------------------------------------------------------------------------------------------------


def test_perfect_logits_cost_nothing_and_probabilities_are_refused():
    actions = torch.arange(7)
    mask = torch.ones(7, 7, dtype=torch.bool)
    perfect = torch.eye(7).unsqueeze(1) * 20
    assert action_loss(perfect, None, actions, mask).given < 0.01
    with pytest.raises(ValueError, match="given probabilities"):
        action_loss(perfect.softmax(-1), None, actions, mask)
    refuse_probabilities(torch.zeros(4, 7))  # untrained logits are no distribution


def test_what_a_double_softmax_does():
    """Perfect 1.165, uniform 1.946, confidently wrong 2.165: it can never come near zero."""
    actions = torch.arange(7)
    mask = torch.ones(7, 7, dtype=torch.bool)

    def loss(logits: torch.Tensor) -> float:
        return action_loss(logits.unsqueeze(1), None, actions, mask, legacy_double_softmax=True).given.item()

    assert loss(torch.eye(7) * 50) == pytest.approx(1.165, abs=1e-3)
    assert loss(torch.zeros(7, 7)) == pytest.approx(math.log(7), abs=1e-5)
    assert loss(torch.eye(7).roll(1, 1) * 50) == pytest.approx(2.165, abs=1e-3)


def test_uncertain_goals_share_the_loss():
    given = torch.randn(5, 2, 7, generator=seeded(0))
    mask = torch.ones(5, 7, dtype=torch.bool)
    actions = torch.tensor([0, 1, 2, 3, 4])
    certain = [
        action_loss(given, None, actions, mask, torch.eye(2)[g].expand(5, 2), balance="none").given for g in (0, 1)
    ]
    mixed = action_loss(given, None, actions, mask, torch.tensor([0.3, 0.7]).expand(5, 2), balance="none")
    assert mixed.given.item() == pytest.approx(0.3 * certain[0].item() + 0.7 * certain[1].item(), rel=1e-5)


def test_illegal_actions_get_no_probability_and_entropy_is_that_of_legal_ones():
    mask = torch.tensor([[True, False, True, False, False, False, False]])
    loss = action_loss(torch.zeros(1, 1, 7), None, torch.tensor([2]), mask)
    assert loss.given.item() == pytest.approx(math.log(2)) and loss.entropy.item() == pytest.approx(math.log(2))
    with_bonus = action_loss(torch.zeros(1, 1, 7), None, torch.tensor([2]), mask, entropy_bonus=0.5)
    assert with_bonus.total.item() == pytest.approx(0.5 * math.log(2))


def test_balance_weights():
    actions = torch.tensor([4] * 9 + [5])
    assert balance_weights(actions, 7, "none").tolist() == [1.0] * 10
    root, full = (balance_weights(actions, 7, kind) for kind in ("sqrt", "full"))
    assert root.mean().item() == pytest.approx(1) and (root[9] / root[0]).item() == pytest.approx(3)
    assert full.mean().item() == pytest.approx(1) and (full[9] / full[0]).item() == pytest.approx(9)
