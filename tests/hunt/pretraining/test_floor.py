"""Exact predictions of rule-based players: the floor of every model."""

import pytest
import torch

from marlab.hunt.game.config import game_config
from marlab.hunt.players.seats import Kind
from marlab.hunt.pretraining.floor import bayes_beliefs, rule_rows, truth_of
from marlab.lab.errors import UserError
from tests.hunt.offline import offline_data

GAME = game_config("msh_4x4")


def test_exact_predictions_are_the_players_own():
    data = offline_data(rand_share=0.2)
    truth = truth_of(data.game, data.part("all"))
    rows = data.rows
    chosen = truth.known.gather(1, rows.a.unsqueeze(1))
    assert (chosen > 0).all(), "no player did what its own rule excludes"
    assert torch.allclose(truth.known.sum(1), torch.ones(rows.size))
    rand = rows.type == Kind.RAND
    assert torch.allclose(truth.known[rand], rows.mask[rand] / rows.mask[rand].sum(1, keepdim=True))
    assert (truth.belief[rows.t == 0] == 0.5).all()
    ns = rule_rows(data.game, rows, [Kind.NS])[:, 0]
    assert torch.equal(ns[rows.type == Kind.NS], truth.known[rows.type == Kind.NS])


def test_exact_beliefs_find_the_type():
    part = offline_data().part("all")
    truth = truth_of(GAME, part)
    goal = (part.rows.type == Kind.NH).long()
    true = truth.belief.gather(1, goal.unsqueeze(1)).squeeze(1)
    assert true[part.rows.t == 4].mean() > 0.97
    assert true.min() > 0, "exact beliefs never exclude the truth"
    flat = bayes_beliefs(torch.full((part.rows.size, 2, 7), 1 / 7), part.rows.a, part.offsets)
    assert torch.allclose(flat, torch.full_like(flat, 0.5))


def test_unknown_players_have_no_exact_predictions():
    part = offline_data().part("all")
    odd = part._replace(rows=part.rows._replace(type=torch.full_like(part.rows.type, int(Kind.WAIT))))
    with pytest.raises(UserError, match="holds WAIT players"):
        truth_of(GAME, odd)
