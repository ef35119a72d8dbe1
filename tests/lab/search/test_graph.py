"""A search recorded once and replayed is the search."""

from __future__ import annotations

import torch

from marlab.lab.search.graph import record_search
from marlab.lab.search.search import (
    search,
)
from tests.hunt.helpers import seeded
from tests.lab.search.cases import PLAIN, assert_same
from tests.lab.search.table_game import random_game


def test_a_recorded_search_is_the_search() -> None:
    """On a CPU; on a GPU the benchmark compares them."""
    game, roots = random_game(14), torch.arange(6)
    root = game.evaluate(roots)
    recorded = record_search(root, (roots,), game.expand, PLAIN["gumbel"], seeded(3))
    assert_same(recorded(root, (roots,)), search(root, (roots,), game.expand, PLAIN["gumbel"], seeded(3)))
