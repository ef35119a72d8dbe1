"""The search on games of tables: what it must find, never do, and how it must not depend on its batch."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from marlab.lab.errors import UserError
from marlab.lab.ppo.timing import Stopwatch
from marlab.lab.search.search import (
    Embedding,
    Evaluation,
    SearchConfig,
    Transition,
    record_search,
    search,
    timed_searches,
)
from tests.hunt.helpers import seeded
from tests.lab.search.cases import PLAIN, Engine, assert_same, doubled, each_config, each_engine, run
from tests.lab.search.table_game import TableGame, layered_game, random_game

# --- statistics ---------------------------------------------------------------------------------------------------


@each_config
@each_engine
def test_illegal_actions_are_never_tried_and_visits_add_up(name: str, engine: Engine) -> None:
    config = replace(PLAIN[name], engine=engine)
    game = random_game(3)
    roots = torch.arange(len(game.value))
    found = run(game, config, roots)
    assert (found.visits.sum(1) == config.simulations).all()
    tree = found.tree
    legal = game.legal[tree.embedding[0].masked_fill(tree.depth < 0, 0)]
    assert not tree.visits.masked_fill(legal, 0).any()
    assert game.legal[roots, found.action].all()
    assert not found.policy[~game.legal].any()
    torch.testing.assert_close(found.policy.sum(1), torch.ones(len(roots)))
    assert (found.deepest <= config.depth_limit).all() and (found.depth <= found.deepest).all()
    closed = (tree.discount == 0) & (tree.depth > 0)
    assert closed.any() and not tree.visits[closed].any()  # nothing is searched below an end


@each_config
@each_engine
def test_a_batch_equals_one_by_one(name: str, engine: Engine) -> None:
    config = replace(PLAIN[name], engine=engine, dirichlet_share=0.0)  # noise depends on the place in a batch
    game, roots = doubled(random_game(4)), torch.arange(5)
    noise = torch.randn(5, 5, generator=seeded(1)) if config.root == "gumbel" else None
    together = search(game.evaluate(roots), (roots,), game.expand, config, None, noise)
    for k in range(5):
        one = slice(k, k + 1)
        alone = search(
            game.evaluate(roots[one]), (roots[one],), game.expand, config, None, None if noise is None else noise[one]
        )
        assert torch.equal(together.visits[one], alone.visits) and torch.equal(together.action[one], alone.action)
        for name in ("q", "value", "policy", "low", "high", "depth"):  # sums may round by their place in a batch
            torch.testing.assert_close(getattr(together, name)[one], getattr(alone, name), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["noisy", "gumbel"])
def test_chance_comes_from_the_generator_alone(name: str) -> None:
    game, roots = random_game(5), torch.arange(30)
    first, again = run(game, PLAIN[name], roots), run(game, PLAIN[name], roots)
    assert_same(first, again)
    assert not torch.equal(first.visits, run(game, PLAIN[name], roots, seed=1).visits)


def test_float64_roots_are_searched_in_float64() -> None:
    game, roots = doubled(random_game(7)), torch.arange(4)
    assert run(game, PLAIN["siblings"], roots).q.dtype == torch.float64


# --- values -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "config",
    [
        SearchConfig(simulations=1500, c1=2.0),
        SearchConfig(simulations=1500, c1=1.25, normalise="tree"),
        SearchConfig(simulations=1500, root="gumbel", gumbel_scale=0.0),
    ],
    ids=["siblings", "tree", "gumbel"],
)
def test_finds_the_best_actions_of_games_solved_by_dynamic_programming(config: SearchConfig) -> None:
    lost, chance, errors, plans, means = [], [], [], [], []
    for seed in range(3):
        game, roots = layered_game(seed), torch.arange(10)
        exact = game.solve().masked_fill(~game.legal, -torch.inf)[:10]
        found = run(game, config, roots)
        lost.append(exact.amax(1) - exact[roots, found.action])
        legal = game.legal[:10]
        chance.append(exact.amax(1) - exact.masked_fill(~legal, 0).sum(1) / legal.sum(1))
        errors.append((found.q - exact)[roots, found.action])
        plans.append(found.tree.plan_value() - exact.amax(1))
        means.append(found.value - exact.amax(1))
    assert torch.cat(lost).mean() < 0.15 * torch.cat(chance).mean()
    assert torch.cat(errors).max() < 1e-4  # a mean over lines of play never exceeds the best one
    assert torch.cat(plans).max() < 1e-4 and torch.cat(plans).mean() > 0.6 * torch.cat(means).mean()


def test_a_terminal_reward_is_found_without_a_useful_value() -> None:
    """A constant value and an even prior: the action that pays and ends the episode is still preferred."""
    states, actions = 20, 7
    generator = seeded(0)
    reward, discount = torch.zeros(states, actions), torch.full((states, actions), 0.95)
    reward[:, 6], discount[:, 6] = 1.0, 0.0
    game = TableGame(
        torch.randint(states, (states, actions), generator=generator),
        reward,
        discount,
        torch.zeros(states, actions),
        torch.full((states,), 0.3),
        torch.ones(states, actions, dtype=torch.bool),
    )
    for config in (SearchConfig(), SearchConfig(root="gumbel")):
        found = run(game, config, torch.arange(states))
        assert (found.q.argmax(1) == 6).all()
        assert (found.ended > 0).all()


def test_random_outcomes_are_averaged_not_foreseen() -> None:
    """A coin is tossed after the move and pays the guess made next: a frozen coin looks like 1, the truth is 0.5."""

    batch = 64
    legal = torch.ones(batch, 2, dtype=torch.bool)
    root = Evaluation(torch.zeros(batch, 2), torch.full((batch,), 0.5), legal)

    def expand(embedding: Embedding, action: Tensor) -> Transition:
        last = embedding[0] == 1  # the second move is the guess
        right = (torch.rand(batch, generator=generator) < 0.5) == (action == 1)
        return Transition((last & right).float(), (~last).float(), root, (embedding[0] + 1,), right.long())

    values = {}
    for outcomes in (1, 16):
        generator = seeded(0)
        config = SearchConfig(simulations=400, outcomes=outcomes, c1=0.5)
        found = search(root, (torch.zeros(batch, dtype=torch.long),), expand, config)
        values[outcomes] = found.value.mean().item(), found.tree.plan_value().mean().item()
        if outcomes > 1:
            distinct = found.tree.children.sort(-1).values.diff(dim=-1).gt(0).sum(-1)
            assert distinct.max() == 2  # equal outcomes share a child: not drawn yet, right, wrong
    assert min(values[1]) > 0.65
    assert values[16] == pytest.approx((0.5, 0.5), abs=0.1)  # rather too much: an action rests on few draws


# --- rules --------------------------------------------------------------------------------------------------------


def test_a_root_without_legal_actions_is_left_alone() -> None:
    game, roots = random_game(8), torch.arange(5)
    root = game.evaluate(roots)
    legal = root.legal.clone()
    legal[2] = False
    for config in (PLAIN["siblings"], PLAIN["gumbel"]):
        found = search(root._replace(legal=legal), (roots,), game.expand, config, seeded(0))
        assert not found.visits[2].any() and not found.policy[2].any()
        assert found.value[2] == root.value[2] and found.q.isfinite().all()
        assert found.low[2] == found.high[2] == root.value[2]
        assert (found.visits.sum(1)[legal.any(1)] == config.simulations).all()


def test_wrong_shapes_are_refused() -> None:
    game, roots = random_game(9), torch.arange(5)
    root = game.evaluate(roots)
    with pytest.raises(UserError, match="values"):
        search(root._replace(value=root.value[:3]), (roots,), game.expand, SearchConfig())
    with pytest.raises(UserError, match="5 rows"):
        search(root, (roots[:2],), game.expand, SearchConfig())
    with pytest.raises(UserError, match="noise"):
        search(root, (roots,), game.expand, SearchConfig(root="gumbel"), noise=torch.zeros(5, 2))


@each_engine
def test_a_stopwatch_hears_of_every_part_and_changes_nothing(engine: Engine) -> None:
    game, roots = random_game(3), torch.arange(6)
    config = SearchConfig(simulations=10, engine=engine)
    watch = Stopwatch(torch.device("cpu"))
    with timed_searches(watch):
        timed = run(game, config, roots)
    seconds = watch.pop()
    assert set(seconds) == {"select", "expand", "backup", "final"} and min(seconds.values()) > 0
    assert_same(timed, run(game, config, roots))
    assert not watch.pop(), "searches outside are not timed"


def test_a_recorded_search_is_the_search() -> None:
    """On a CPU; on a GPU the benchmark compares them."""
    game, roots = random_game(14), torch.arange(6)
    root = game.evaluate(roots)
    recorded = record_search(root, (roots,), game.expand, PLAIN["gumbel"], seeded(3))
    assert_same(recorded(root, (roots,)), search(root, (roots,), game.expand, PLAIN["gumbel"], seeded(3)))
