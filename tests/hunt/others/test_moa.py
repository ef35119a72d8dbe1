import math

import pytest
import torch

from marlab.hunt.game.config import game_config
from marlab.hunt.game.rows import row_layout, rows_of_planes
from marlab.hunt.others.copies import copy_generators
from marlab.hunt.others.moa import Moa, action_loss, averaged_copy, balance_weights, refuse_probabilities
from tests.hunt.helpers import seeded
from tests.hunt.offline import offline_data

GAME = game_config("msh_4x4")


def some_rows(count: int, width: int = 2) -> tuple[torch.Tensor, ...]:
    rows = offline_data().rows
    goals = torch.randn(count, 3, width, generator=seeded(1))
    seen = rows_of_planes(row_layout(GAME), rows.obs[:count], rows.mask[:count])
    return seen, rows.t[:count] / 35, goals, torch.arange(count) % 3


def new_moa(width: int, copies: int = 1, free: bool = True) -> Moa:
    moa = Moa(GAME, width, 8, copy_generators(range(copies), 1, "t"), free=free)
    with torch.no_grad():
        moa.actor.weight.normal_(generator=seeded(0))
        moa.place.normal_(generator=seeded(1))
    return moa


# --- networks -----------------------------------------------------------------------------------------------------


def test_rows_and_pairs_give_the_same_answers():
    moa = new_moa(2)
    rows, time, goals, slot = some_rows(12)
    given, free = moa.rows(rows, time, goals, slot)
    assert given.shape == (12, 3, 7) and free.shape == (12, 7)
    by_slot = [x.view(1, 4, 3, *x.shape[1:]) for x in (rows, time, goals)]
    pairs = moa(by_slot[0], by_slot[1], moa.wishes(by_slot[2]))  # [1, 4, 3, G, A]
    assert torch.allclose(pairs.flatten(0, 2), given, atol=1e-5)
    other, _ = moa.rows(rows, time, goals, (slot + 1) % 3)
    assert not torch.allclose(other, given, atol=1e-6), "the models of different others are different models"


def test_goals_are_told_apart_and_the_free_head_sees_none():
    moa = new_moa(2)
    rows, time, goals, slot = some_rows(6)
    given, free = moa.rows(rows, time, goals, slot)
    alone, same_free = moa.rows(rows, time, goals[:, 1:2], slot)
    assert torch.allclose(alone[:, 0], given[:, 1], atol=1e-6) and torch.equal(free, same_free)
    assert not torch.allclose(given[:, 0], given[:, 1])


def test_a_model_without_goals():
    moa = new_moa(0)
    rows, time, _, slot = some_rows(7)
    given, free = moa.rows(rows, time, torch.zeros(7, 1, 0), slot)
    assert given.shape == (7, 1, 7) and torch.equal(given[:, 0], free)


def test_goals_told_once_are_goals_told_every_time():
    """What a tree precomputes gives the same predictions as trying all goals, for every observer's own network."""
    moa = new_moa(2, copies=2, free=False)
    rows = some_rows(12)[0].view(2, 2, 3, -1)
    time, goal = torch.rand(2, 2, generator=seeded(3)), torch.randint(0, 2, (2, 2, 3), generator=seeded(4))
    every = moa(rows, time, moa.wishes(torch.eye(2).expand(2, 1, 1, 2, 2)))  # [P, N, S, K, A]
    given = moa.given(rows, time, moa.wishes(torch.eye(2)[goal]))
    expected = every.gather(3, goal[..., None, None].expand(-1, -1, -1, 1, 7)).squeeze(3)
    torch.testing.assert_close(given, expected)
    single = new_moa(2, free=False)
    single.load_state_dict({k: w[1:] for k, w in moa.state_dict().items()})
    torch.testing.assert_close(single.given(rows[1:], time[1:], single.wishes(torch.eye(2)[goal[1:]])), expected[1:])


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


def test_balance_weights():
    actions = torch.tensor([4] * 9 + [5])
    assert balance_weights(actions, 7, "none").tolist() == [1.0] * 10
    root, full = (balance_weights(actions, 7, kind) for kind in ("sqrt", "full"))
    assert root.mean().item() == pytest.approx(1) and (root[9] / root[0]).item() == pytest.approx(3)
    assert full.mean().item() == pytest.approx(1) and (full[9] / full[0]).item() == pytest.approx(9)
