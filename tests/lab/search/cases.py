"""Settings and small games that several tests of the search share."""

from __future__ import annotations

from typing import Literal

import pytest
import torch
from torch import Tensor

from marlab.lab.search.search import (
    SearchConfig,
    SearchResult,
    search,
)
from tests.hunt.helpers import seeded
from tests.lab.search.table_game import ENGINES, TableGame

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


def chain() -> TableGame:
    """Go on (0) or take 1 at once (1); the third step of going on pays 3. By hand: 3 * 0.9^2 = 2.43 beats 1."""
    reward = torch.tensor([[0.0, 1.0], [0.0, 1.0], [3.0, 1.0]])
    discount = torch.tensor([[0.9, 0.0], [0.9, 0.0], [0.0, 0.0]])
    following = torch.tensor([[1, 0], [2, 0], [0, 0]])
    return TableGame(following, reward, discount, torch.zeros(3, 2), torch.zeros(3), torch.ones(3, 2, dtype=torch.bool))
