"""Who is to decide, how trees become one plan, and the figures of a plan."""

from __future__ import annotations

import math

import pytest
import torch

from marlab.hunt.planner.plans import boltzmann, decision_metrics, decisions, normalised, scatter_to_groups, summarise
from marlab.lab.search.search import Evaluation, SearchConfig, search
from tests.hunt.helpers import seeded
from tests.lab.search.table_game import random_game


def test_decisions_are_grouped_by_seed_and_seat() -> None:
    want = torch.tensor([[1, 0], [0, 0], [1, 1], [0, 1], [0, 0], [1, 0]]).bool()  # two seeds of three games
    who = decisions(want, 2)
    assert who is not None
    found = {(int(g), int(s)) for g, s, r in zip(who.game.flatten(), who.seat.flatten(), who.real.flatten()) if r}
    assert found == {(0, 0), (2, 0), (2, 1), (3, 1), (5, 0)}
    assert who.game.shape == (4, 2)
    assert bool((who.game[:2] < 3).all()) and bool((who.game[2:] >= 3).all())  # groups of seed 0, then of seed 1
    assert decisions(torch.zeros(4, 2).bool(), 2) is None
    larger = decisions(want, 2, sizes=1)
    assert larger is not None and larger.game.shape == (4, 3) and int(larger.real.sum()) == 5


def test_normalised_values() -> None:
    q = torch.tensor([[1.0, 3.0], [2.0, 2.0]])
    found = normalised(q, torch.tensor([1.0, 2.0]), torch.tensor([5.0, 2.0]))
    assert torch.equal(found, torch.tensor([[0.0, 0.5], [0.0, 0.0]]))


def test_trees_of_a_decision_are_averaged_on_one_scale() -> None:
    game, states, trees = random_game(21), torch.arange(10), 3
    root = game.evaluate(states)
    many = Evaluation(*(part.repeat_interleave(trees, 0) for part in root))
    config = SearchConfig(simulations=40, root="gumbel", considered=3)
    result = search(many, (states.repeat_interleave(trees),), game.expand, config, seeded(0))
    found = summarise(result, trees)
    q = result.q.view(10, trees, 5)
    torch.testing.assert_close(found.q.mean(1), (q[:, 0] + q[:, 1] + q[:, 2]) / 3)
    low, high = result.low.view(10, trees).amin(1), result.high.view(10, trees).amax(1)
    scaled = normalised(found.q.mean(1), found.low, found.high)
    torch.testing.assert_close(scaled, (found.q.mean(1) - low[:, None]) / (high - low)[:, None])
    policy = boltzmann(scaled, root.legal, 10.0)
    torch.testing.assert_close(policy, (10 * scaled).masked_fill(~root.legal, -torch.inf).softmax(1))
    assert (found.visits.sum((1, 2)) == 120).all()
    flat = normalised(torch.full((1, 4), 0.7), torch.tensor([0.7]), torch.tensor([0.7]))
    assert not flat.any()  # where nothing differs, nothing is preferred


def test_planner_figures_are_what_they_say() -> None:
    game, states, trees = random_game(21), torch.arange(10), 3
    root = game.evaluate(states)
    many = Evaluation(*(part.repeat_interleave(trees, 0) for part in root))
    result = search(many, (states.repeat_interleave(trees),), game.expand, SearchConfig(simulations=40), seeded(0))
    found = summarise(result, trees)
    q, legal = found.q.mean(1), root.legal
    prior = root.logits.masked_fill(~legal, -torch.inf).softmax(1)
    policy = boltzmann(normalised(q, found.low, found.high), legal, 25.0)
    metrics = decision_metrics(found, q, policy, prior, legal, 2.0)
    k = 4
    p, b, mask = policy[k], prior[k], legal[k]
    assert metrics["entropy"][k].item() == pytest.approx(-sum(x * math.log(x) for x in p.tolist() if x > 0), abs=1e-5)
    kl = sum(x * math.log(x / y) for x, y in zip(p[mask].tolist(), b[mask].tolist()) if x > 0)
    assert metrics["kl_to_prior"][k].item() == pytest.approx(kl, abs=1e-4)
    assert metrics["improvement"][k].item() == pytest.approx(2 * ((p - b) * q[k])[mask].sum().item(), abs=1e-5)
    assert metrics["q_spread"][k].item() == pytest.approx(2 * (q[k][mask].max() - q[k][mask].min()).item(), abs=1e-5)
    apart = result.q.view(10, trees, 5)[k].std(0, correction=0)[mask].mean()
    assert metrics["disagreement"][k].item() == pytest.approx(2 * apart.item(), abs=1e-5)
    assert all(value.shape == (10,) and value.isfinite().all() for value in metrics.values())


def test_results_go_to_the_decisions_they_belong_to() -> None:
    game, states = random_game(3), torch.arange(6)
    root = game.evaluate(states)
    found = summarise(search(root, (states,), game.expand, SearchConfig(simulations=12), seeded(0)), 2)
    real = torch.tensor([True, False, True, False, True])
    wide = scatter_to_groups(found, real)
    assert torch.equal(wide.q[real], found.q) and not wide.q[~real].any() and not wide.visits[~real].any()
    first = torch.tensor([0, 1, 2, 3, 4])
    assert torch.equal(wide.line(first)[real], found.line(first[real])) and (wide.line(first)[~real] == -1).all()
