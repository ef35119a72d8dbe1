"""The trees in C: any number of actions that is accepted is right, and a damaged cache is built again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from marlab.lab.search import native
from marlab.lab.search.config import SearchConfig
from marlab.lab.search.search import search
from tests.lab.search.table_game import TableGame, needs_compiler, random_game


def doubled(game: TableGame) -> TableGame:
    return TableGame(**{k: v.double() if v.is_floating_point() else v for k, v in vars(game).items()})


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
def test_a_damaged_library_in_the_cache_is_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    native._build.cache_clear()
    try:
        assert native.native_library(torch.float64, 3) is not None
        (library,) = (tmp_path / "marlab").glob("*.so")
        whole = library.read_bytes()
        for damaged in (whole[: len(whole) // 2], b"", whole[:-1] + b"x"):
            library.unlink()  # a new file: the old one is mapped into this process
            library.write_bytes(damaged)
            assert not native._intact(library)
        native._build.cache_clear()
        library.unlink()
        assert native.native_library(torch.float64, 3) is not None
        assert native._intact(library)
    finally:
        native._build.cache_clear()
