"""Joining trees into decisions, and the search on the real game against its exact solution."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from marlab.hunt.best_response import best_response
from marlab.hunt.config import game_config
from marlab.hunt.game import HUNT_HARE, Game, State
from marlab.hunt.games import make_game
from marlab.hunt.players import Kind, RulePlayers
from marlab.hunt.search import Embedding, Evaluation, Expand, SearchConfig, SearchResult, Transition, search
from marlab.hunt.search_decision import DecisionConfig, boltzmann, decide, planner_metrics, repeat_roots
from marlab.hunt.views import View
from marlab.lab.errors import UserError

from .helpers import placed, seeded
from .table_game import random_game

GAMMA = 0.95


def searched(trees: int = 3) -> tuple[SearchResult, Evaluation]:
    game, states = random_game(21), torch.arange(10)
    root, embedding = repeat_roots(game.evaluate(states), (states,), trees)
    config = SearchConfig(simulations=40, root="gumbel", considered=3)
    return search(root, embedding, game.expand, config, seeded(0)), game.evaluate(states)


# --- decisions ----------------------------------------------------------------------------------------------------


def test_trees_of_a_decision_are_averaged() -> None:
    result, root = searched()
    found = decide(result, root.legal, DecisionConfig(beta=10.0), trees=3)
    q = result.q.view(10, 3, 5)
    torch.testing.assert_close(found.q, (q[:, 0] + q[:, 1] + q[:, 2]) / 3)
    low, high = result.low.view(10, 3).amin(1), result.high.view(10, 3).amax(1)
    expected = (10 * (found.q - low[:, None]) / (high - low)[:, None]).masked_fill(~root.legal, -torch.inf).softmax(1)
    torch.testing.assert_close(found.policy, expected)
    assert (found.visits.sum(1) == 120).all()
    assert torch.equal(found.best(), expected.argmax(1))


def test_other_rules_of_joining() -> None:
    result, root = searched()
    visits = result.visits.view(10, 3, 5).sum(1)
    plain = decide(result, root.legal, DecisionConfig(rule="visits"), trees=3)
    torch.testing.assert_close(plain.policy, visits / 120)
    sharp = decide(result, root.legal, DecisionConfig(rule="visits", visit_exponent=1.5), trees=3)
    torch.testing.assert_close(sharp.policy, visits**1.5 / (visits**1.5).sum(1, keepdim=True))
    improved = decide(result, root.legal, DecisionConfig(rule="improved"), trees=3)
    torch.testing.assert_close(improved.policy, result.policy.view(10, 3, 5).mean(1))
    raw = decide(result, root.legal, DecisionConfig(legacy_beta=2.0), trees=3)
    torch.testing.assert_close(raw.policy, boltzmann(raw.q, root.legal, 2.0))
    for found in (plain, sharp, improved, raw):
        torch.testing.assert_close(found.policy.sum(1), torch.ones(10))
        assert not found.policy[~root.legal].any()
        drawn = found.sample(seeded(1))
        assert root.legal[torch.arange(10), drawn].all() and torch.equal(drawn, found.sample(seeded(1)))


def test_equal_values_give_an_even_policy() -> None:
    result, root = searched(trees=1)
    flat = replace(result, q=torch.full_like(result.q, 0.7), low=torch.full((10,), 0.7), high=torch.full((10,), 0.7))
    found = decide(flat, root.legal, DecisionConfig())
    assert not found.scaled.any()
    torch.testing.assert_close(found.policy, root.legal / root.legal.sum(1, keepdim=True))


def test_unscaled_values_flatten_what_the_planner_found() -> None:
    """A hare one step nearer is worth 0.05 more: raw beta 2 hardly sees it, scaled values do."""
    q = torch.tensor([[GAMMA**2, GAMMA**3, GAMMA**4, GAMMA**4]])
    legal = torch.ones(1, 4, dtype=torch.bool)
    raw, scaled = boltzmann(q, legal, 2.0), boltzmann((q - q.amin()) / (q.amax() - q.amin()), legal, 25.0)
    entropy = [-(p * p.log()).sum().item() for p in (raw, scaled)]
    assert entropy[0] > math.log(4) - 0.02 and entropy[1] < 0.1


def test_planner_metrics_are_what_they_say() -> None:
    result, root = searched()
    found = decide(result, root.legal, DecisionConfig(beta=25.0), trees=3)
    prior = root.logits.masked_fill(~root.legal, -torch.inf).softmax(1)
    metrics = planner_metrics(found, result, prior, trees=3)
    k = 4
    p, b, q = found.policy[k], prior[k], found.q[k]
    mask = root.legal[k]
    assert metrics["entropy"][k].item() == pytest.approx(-(p * p.clamp_min(1e-30).log()).sum().item(), abs=1e-5)
    kl = sum(x * math.log(x / y) for x, y in zip(p[mask].tolist(), b[mask].tolist()) if x > 0)
    assert metrics["kl"][k].item() == pytest.approx(kl, abs=1e-4)
    assert metrics["improvement"][k].item() == pytest.approx(((p - b) * q).sum().item(), abs=1e-5)
    assert metrics["spread"][k].item() == pytest.approx((q[mask].max() - q[mask].min()).item(), abs=1e-6)
    trees = result.q.view(10, 3, 5)[k].std(0, correction=0)
    assert metrics["disagreement"][k].item() == pytest.approx((trees * p).sum().item(), abs=1e-5)
    assert all(value.shape == (10,) and value.isfinite().all() for value in metrics.values())


def test_wrong_decisions_are_refused() -> None:
    result, root = searched()
    with pytest.raises(UserError, match="2 trees"):
        decide(result, root.legal, DecisionConfig(), trees=2)
    for wrong in ({"rule": "max"}, {"beta": -1.0}, {"visit_exponent": 0.0}, {"legacy_beta": 2.0, "rule": "visits"}):
        with pytest.raises(UserError):
            DecisionConfig(**wrong)


# --- the hunt -----------------------------------------------------------------------------------------------------


def hunt(game: Game, kinds: list[Kind], value: float = 0.0) -> tuple[Expand, object]:
    """Player 1 among rule-based players it knows exactly, even priors, the same value everywhere."""
    players, generator = RulePlayers(game, kinds), seeded(5)

    def evaluate(state: State) -> Evaluation:
        batch = state.batch
        return Evaluation(torch.zeros(batch, game.actions), torch.full((batch,), value), game.legal(state)[:, 0])

    def expand(embedding: Embedding, action: Tensor) -> Transition:
        state = State(*embedding)
        others, _ = players.act(View(game, state), players.begin(state.batch, generator), generator)
        joint = torch.cat((action.unsqueeze(1), others[:, 1:]), 1)
        after, out = game.step(state, joint)
        codes = (8 ** torch.arange(1, game.players)) * out.executed[:, 1:]
        return Transition(out.reward[:, 0], GAMMA * ~out.done[:, 0], evaluate(after), tuple(after), codes.sum(1))

    return expand, evaluate


@pytest.mark.parametrize("kind", [Kind.NS, Kind.NH])
def test_the_last_steps_of_the_tiny_hunt_are_played_as_dynamic_programming_does(kind: Kind) -> None:
    """With three steps to go the tree sees every end. The value knows nothing, so the prior must weigh enough."""
    game = make_game(game_config("msh_tiny"))
    starts = game.reset(4, seeded(2))
    late = starts._replace(t=torch.full_like(starts.t, game.config.final_time - 3))
    expand, evaluate = hunt(game, [Kind.RAND, kind])
    config = SearchConfig(simulations=800, outcomes=8, c1=10.0, max_depth=3)
    found = search(evaluate(late), tuple(late), expand, config)
    solved = [best_response(game, starts.select(slice(b, b + 1)), [Kind.RAND, kind], gamma=GAMMA) for b in range(4)]
    exact = torch.cat([one.q(late.select(slice(b, b + 1))) for b, one in enumerate(solved)])
    chosen = found.q.masked_fill(~evaluate(late).legal, -1).argmax(1)
    assert (exact.amax(1) > 0).any()
    assert (exact.amax(1) - exact[torch.arange(4), chosen]).max() < 0.05


def test_a_hare_at_hand_is_taken_with_a_value_that_knows_nothing() -> None:
    config = game_config("msh_4x4")
    game, state = placed(config, players=[(0, 0), (3, 3), (3, 2), (2, 3)], stags=[(1, 1)], hares=[(0, 0), (3, 0)])
    for value in (0.0, 0.5):
        expand, evaluate = hunt(game, [Kind.RAND, Kind.NH, Kind.NH, Kind.NH], value)
        for search_config in (SearchConfig(c1=1.25), SearchConfig(), SearchConfig(root="gumbel")):
            found = search(evaluate(state), tuple(state), expand, search_config, seeded(0))
            assert found.q[0].argmax().item() == HUNT_HARE


@pytest.mark.parametrize("root", ["puct", "gumbel"])
def test_the_joined_policy_improves_on_the_prior(root: str) -> None:
    game = make_game(game_config("msh_4x4"))
    starts = game.reset(100, seeded(3))
    expand, evaluate = hunt(game, [Kind.RAND, Kind.NS, Kind.NH, Kind.NH])
    trees = 2 if root == "puct" else 1  # an improved policy improves on the values of its own tree
    roots, embedding = repeat_roots(evaluate(starts), tuple(starts), trees)
    result = search(roots, embedding, expand, SearchConfig(root=root), seeded(0))  # type: ignore[arg-type]
    legal = game.legal(starts)[:, 0]
    rule = DecisionConfig() if root == "puct" else DecisionConfig(rule="improved")
    metrics = planner_metrics(decide(result, legal, rule, trees), result, legal.float(), trees)
    assert (metrics["improvement"] >= -1e-6).float().mean() >= 0.99
