"""What a tree holds: counts and values that add up, solved by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest
import torch

from marlab.lab.search.search import (
    SearchConfig,
    Tree,
)
from tests.lab.search.cases import PLAIN, Engine, chain, doubled, each_config, each_engine, run
from tests.lab.search.table_game import random_game


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
        return tree.raw_values[b, node].item()
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
        raw_values=torch.tensor([[7.0, 8, 99, 0.5, 0]]),
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
