"""The search on games of tables: what it must find, never do, and how it must not depend on its batch."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Literal

import pytest
import torch
from torch import Tensor

from marlab.lab.errors import UserError
from marlab.lab.ppo.timing import Stopwatch
from marlab.lab.search import native as search_native
from marlab.lab.search.graph import record_search
from marlab.lab.search.rules import Rows, dirichlet_prior, halving_visits, puct_scores
from marlab.lab.search.search import (
    Embedding,
    Evaluation,
    SearchConfig,
    SearchResult,
    Transition,
    Tree,
    search,
    timed_searches,
)
from tests.hunt.helpers import seeded
from tests.lab.search.table_game import ENGINES, TableGame, layered_game, needs_compiler, random_game

PLAIN = {
    "siblings": SearchConfig(simulations=60),
    "tree": SearchConfig(simulations=60, normalise="tree", c1=1.25),
    "range": SearchConfig(simulations=60, normalise="range", value_range=(-3.0, 3.0), c1=1.25),
    "raw": SearchConfig(simulations=60, normalise="none", legacy_q=True, legacy_terminal_reward=True, c1=1.0),
    "shallow": SearchConfig(simulations=60, max_depth=2, c1=1.25),
    "noisy": SearchConfig(simulations=60, dirichlet_share=0.25, c1=1.25),
    "gumbel": SearchConfig(simulations=60, root="gumbel", considered=3),
    "outcomes": SearchConfig(simulations=60, outcomes=4, c1=1.25),
}
each_config = pytest.mark.parametrize("name", PLAIN)
each_engine = pytest.mark.parametrize("engine", ENGINES)
Engine = Literal["tensors", "native"]


def run(game: TableGame, config: SearchConfig, roots: Tensor, seed: int = 0) -> SearchResult:
    return search(game.evaluate(roots), (roots,), game.expand, config, seeded(seed))


def assert_same(a: SearchResult, b: SearchResult, tolerance: float = 0.0) -> None:
    for name in ("visits", "action", "deepest"):
        assert torch.equal(getattr(a, name), getattr(b, name)), name
    for name in ("q", "value", "policy", "depth", "ended", "low", "high"):
        torch.testing.assert_close(getattr(a, name), getattr(b, name), rtol=0, atol=tolerance, msg=name)


def doubled(game: TableGame) -> TableGame:
    """The same game in double precision, where rounding does not decide between actions."""
    return TableGame(**{k: v.double() if v.is_floating_point() else v for k, v in vars(game).items()})


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


@each_config
@each_engine
def test_a_tree_is_consistent(name: str, engine: Engine) -> None:
    """Every node but the root is the child of one action, whose visits and values follow from its subtree."""
    config = replace(PLAIN[name], engine=engine)
    game, roots = random_game(6), torch.arange(8)
    found = run(game, config, roots)
    tree = found.tree
    for b in range(8):
        made = (tree.depth[b] >= 0).nonzero().flatten().tolist()
        children = tree.children[b][tree.children[b] >= 0]
        assert sorted(set(children.tolist())) == made[1:]
        for node in made:
            for action, kids in enumerate(tree.children[b, node].tolist()):
                below = sorted({k for k in kids if k >= 0})
                if not below:
                    assert tree.visits[b, node, action] == 0
                    continue
                assert all(tree.depth[b, k] == tree.depth[b, node] + 1 for k in below)
                if config.outcomes == 1 and bool(tree.visits[b, below[0]].any()):
                    # every visit of an action but the first went on from its child
                    assert tree.visits[b, node, action] == tree.visits[b, below[0]].sum() + 1
                    expected = tree.reward[b, below[0]] + tree.discount[b, below[0]] * tree.value[b, below[0]]
                    assert tree.q[b, node, action].item() == pytest.approx(expected.item(), abs=1e-5)


def test_float64_roots_are_searched_in_float64() -> None:
    game, roots = doubled(random_game(7)), torch.arange(4)
    assert run(game, PLAIN["siblings"], roots).q.dtype == torch.float64


@needs_compiler
@each_config
def test_engines_grow_the_same_trees(name: str) -> None:
    """In double precision, where rounding decides nothing; float differs in last bits only."""
    game, roots = random_game(12), torch.arange(40)
    exact = doubled(game)
    a, b = (run(exact, replace(PLAIN[name], engine=engine), roots) for engine in ("tensors", "native"))
    for field in fields(Tree):
        if field.name != "embedding":
            made = a.tree.depth >= 0
            assert torch.equal(made, b.tree.depth >= 0)
            found, wanted = getattr(b.tree, field.name)[made], getattr(a.tree, field.name)[made]
            torch.testing.assert_close(found, wanted, rtol=0, atol=1e-9, msg=field.name)
    assert_same(a, b, tolerance=1e-9)
    near = [run(game, replace(PLAIN[name], engine=engine), roots).visits for engine in ("tensors", "native")]
    assert (near[0] == near[1]).all(1).float().mean() > 0.9


def test_without_a_compiler_tensors_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    game, roots = random_game(13), torch.arange(6)
    monkeypatch.setattr("marlab.lab.search.native.shutil.which", lambda name: None)
    search_native._build.cache_clear()
    try:
        assert_same(run(game, PLAIN["tree"], roots), run(game, replace(PLAIN["tree"], engine="tensors"), roots))
        with pytest.raises(UserError, match="no C compiler"):
            run(game, replace(PLAIN["tree"], engine="native"), roots)
    finally:
        search_native._build.cache_clear()


def test_a_recorded_search_is_the_search() -> None:
    """On a CPU; on a GPU the benchmark compares them."""
    game, roots = random_game(14), torch.arange(6)
    root = game.evaluate(roots)
    recorded = record_search(root, (roots,), game.expand, PLAIN["gumbel"], seeded(3))
    assert_same(recorded(root, (roots,)), search(root, (roots,), game.expand, PLAIN["gumbel"], seeded(3)))


# --- values -------------------------------------------------------------------------------------------------------


def chain() -> TableGame:
    """Go on (0) or take 1 at once (1); the third step of going on pays 3. By hand: 3 * 0.9^2 = 2.43 beats 1."""
    reward = torch.tensor([[0.0, 1.0], [0.0, 1.0], [3.0, 1.0]])
    discount = torch.tensor([[0.9, 0.0], [0.9, 0.0], [0.0, 0.0]])
    following = torch.tensor([[1, 0], [2, 0], [0, 0]])
    return TableGame(following, reward, discount, torch.zeros(3, 2), torch.zeros(3), torch.ones(3, 2, dtype=torch.bool))


@pytest.mark.parametrize("normalise", ["siblings", "tree"])
def test_values_solved_by_hand(normalise: Literal["siblings", "tree"]) -> None:
    game, root = chain(), torch.tensor([0])
    found = run(game, SearchConfig(simulations=2000, normalise=normalise, c1=2.0), root)
    assert found.action.item() == 0
    assert found.q[0, 1].item() == 1.0  # taken at once, exactly
    assert found.q[0, 0].item() == pytest.approx(2.43, abs=0.15)  # the mean includes lines that stop early
    assert found.tree.line(5, root, found.action).tolist() == [[0, 0, 0, -1, -1]]
    assert found.tree.line(3, root, torch.tensor([1])).tolist() == [[1, -1, -1]]  # the other way ends at once
    assert found.tree.plan_value().item() == pytest.approx(2.43)  # the plan does not
    assert found.low.item() >= 0 and found.high.item() == 3.0
    assert game.solve()[0].tolist() == pytest.approx([2.43, 1.0])


def worth_of(tree: Tree, b: int, node: int = 0) -> float:
    """What the plan of tree `b` is worth from a node on, as `Tree.plan_value` describes it, one node at a time."""
    visits, actions = tree.visits[b, node].tolist(), int((tree.prior[b, node] > 0).sum())
    if not sum(visits) or sum(visits) < actions:
        return tree.own[b, node].item()
    found = []
    for action, tried in enumerate(visits):
        if tried == max(visits):
            kids = [k for k in tree.children[b, node, action].tolist() if k >= 0]
            ends = [tree.discount[b, k].item() * worth_of(tree, b, k) for k in kids]
            found.append(sum(tree.reward[b, k].item() + end for k, end in zip(kids, ends)) / len(kids))
    return max(found)


@each_config
@each_engine
def test_the_worth_of_a_plan_follows_from_its_tree(name: str, engine: Engine) -> None:
    found = run(doubled(random_game(15)), replace(PLAIN[name], engine=engine), torch.arange(40))
    expected = torch.tensor([worth_of(found.tree, b) for b in range(40)], dtype=torch.float64)
    torch.testing.assert_close(found.tree.plan_value(), expected, rtol=0, atol=1e-12)
    assert float((expected - found.value).abs().max()) > 0.1


def test_the_worth_of_a_plan_by_hand() -> None:
    """Two legal actions of three. The first, most visited, led to nodes 1 (twice) and 2; 2 is an end, 3 is a rumour."""
    legal = torch.tensor([0.5, 0.5, 0.0])
    tree = Tree(
        prior=legal.expand(1, 5, 3),
        visits=torch.tensor([[[6.0, 3, 0], [2, 2, 0], [0, 0, 0], [1, 0, 0], [0, 0, 0]]]),
        q=torch.zeros(1, 5, 3),
        own=torch.tensor([[7.0, 8, 99, 0.5, 0]]),
        value=torch.zeros(1, 5),
        reward=torch.tensor([[0.0, 0, 3, 50, 1]]),
        discount=torch.tensor([[1.0, 0.9, 0, 0.9, 0.5]]),
        depth=torch.tensor([[0, 1, 1, 1, 2]]),
        children=torch.tensor(
            [[[[1, 1, 2], [3, -1, -1], [-1] * 3], [[4, 4, -1], [3, -1, -1], [-1] * 3], *[[[-1] * 3] * 3] * 3]]
        ),
        embedding=(),
    )
    # node 3 was tried once for two actions: 0.5 stands; node 1: the better one of equals, 50 + 0.9 * 0.5 and not 1
    assert tree.plan_value().item() == pytest.approx((2 * 0.9 * 50.45 + 3) / 3)


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


def test_sequential_halving_shares_the_budget() -> None:
    assert halving_visits(4, 16) == [0] * 4 + [1] * 4 + [2] * 2 + [3] * 2 + [4] * 2 + [5] * 2
    assert halving_visits(1, 3) == [0, 1, 2]
    assert all(len(halving_visits(k, 50)) == 50 for k in range(20))


def test_legacy_reward_forgets_what_is_paid_on_the_way() -> None:
    game = chain()
    paid = TableGame(**{**vars(game), "reward": game.reward + 0.5})  # something for every step
    root = torch.tensor([0])
    plain = SearchConfig(simulations=300, c1=1.0)
    q = run(paid, plain, root).q[0, 0].item()
    forgetful = SearchConfig(simulations=300, c1=1.0, legacy_terminal_reward=True)
    assert q - run(paid, forgetful, root).q[0, 0].item() > 0.8  # 0.5 (1 + 0.9) less what ended early


def test_legacy_q_prefers_what_was_tried_often() -> None:
    """One visit of 1 counts 1/2 with W / (1 + N), so 0.6 tried again and again looks better than it."""
    rows = Rows(
        prior=torch.full((2, 1), 1e-9),
        visits=torch.tensor([[1.0], [9.0]]),
        returns=torch.tensor([[1.0], [5.4], [0.0]]),
    )
    plain = SearchConfig(normalise="none")
    assert puct_scores(rows, plain).argmax(0).item() == 0
    assert puct_scores(rows, replace(plain, legacy_q=True)).argmax(0).item() == 1


def test_dirichlet_noise_is_a_distribution_with_the_right_spread() -> None:
    legal = torch.ones(7, 20000, dtype=torch.bool)
    legal[6] = False
    prior = torch.full((7, 20000), 1 / 6).masked_fill(~legal, -torch.inf)
    config = SearchConfig(dirichlet_share=1.0, dirichlet_alpha=0.3)
    noisy = dirichlet_prior(prior, config, seeded(0))
    assert noisy[6].isneginf().all()
    torch.testing.assert_close(noisy[:6].sum(0), torch.ones(20000))
    mean, alpha = 1 / 6, 0.3
    torch.testing.assert_close(noisy[:6].mean(1), torch.full((6,), mean), rtol=0, atol=0.01)
    variance = mean * (1 - mean) / (6 * alpha + 1)
    torch.testing.assert_close(noisy[:6].var(1), torch.full((6,), variance), rtol=0.05, atol=0)


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


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"simulations": 0}, "simulations"),
        ({"c1": 0.0}, "c1"),
        ({"max_depth": 0}, "max_depth"),
        ({"root": "ucb"}, "root"),
        ({"value_range": (1.0, 1.0)}, "value_range"),
        ({"dirichlet_share": 1.5}, "dirichlet_share"),
        ({"root": "gumbel", "legacy_q": True}, "legacy_q"),
        ({"outcomes": 0}, "outcomes"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict, said: str) -> None:
    with pytest.raises(UserError, match=said):
        SearchConfig(**wrong)


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
