"""The trees in C: equal to those in tensors for any number of actions."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
import torch

from marlab.lab.errors import UserError
from marlab.lab.native import library_of
from marlab.lab.search import native
from marlab.lab.search.config import SearchConfig
from marlab.lab.search.search import (
    Tree,
    search,
)
from tests.lab.search.cases import PLAIN, assert_same, doubled, each_config, run
from tests.lab.search.table_game import needs_compiler, random_game


@needs_compiler
@pytest.mark.parametrize("root", ["puct", "gumbel"])
@pytest.mark.parametrize("actions", [1, 7, 8, 9, 16, 17, 20, 24, 25, 31, 32])
def test_any_number_of_actions(actions: int, root: str) -> None:
    """Lanes are compared by halves, so their number must be a power of two; 17 to 24 actions once lost a lane."""
    game, roots = doubled(random_game(3, actions=actions)), torch.arange(12)
    config = SearchConfig(simulations=80, root=root, considered=actions)  # type: ignore[arg-type]
    a, b = (
        search(
            game.evaluate(roots), (roots,), game.expand, replace(config, engine=engine),
            torch.Generator().manual_seed(0),
        )
        for engine in ("tensors", "native")
    )  # fmt: skip
    assert torch.equal(a.visits, b.visits) and torch.equal(a.action, b.action)


def test_more_actions_are_refused() -> None:
    assert native.native_library(torch.float64, native.MOST_ACTIONS + 1) is None


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
    monkeypatch.setattr("marlab.lab.native.shutil.which", lambda name: None)
    library_of.cache_clear()
    try:
        assert_same(run(game, PLAIN["tree"], roots), run(game, replace(PLAIN["tree"], engine="tensors"), roots))
        with pytest.raises(UserError, match="no C compiler"):
            run(game, replace(PLAIN["tree"], engine="native"), roots)
    finally:
        library_of.cache_clear()
