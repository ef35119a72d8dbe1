"""Shapes of worlds, and a deck that deals everybody equally often."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from marlab.lab.errors import UserError
from marlab.market.simulator.seating import Deck, processes_of, shape_of


def test_shapes_are_levels_by_factories_or_official() -> None:
    assert shape_of("3x4") == (3, 4)
    assert shape_of("official") is None
    for wrong in ("5x4", "3x9", "3", "3x", "axb", "2x0"):
        with pytest.raises(UserError, match="levels x factories"):
            shape_of(wrong)


def test_factories_stand_level_by_level() -> None:
    assert processes_of((2, 3)) == (0, 0, 1, 1, 1)


def test_a_deck_deals_everybody_once_before_anybody_twice() -> None:
    deck = Deck("abcde", random.Random(0))
    hands = [deck.deal(4) for _ in range(5)]
    assert Counter(name for hand in hands for name in hand) == dict.fromkeys("abcde", 4)
    assert hands == [again.deal(4) for again in [Deck("abcde", random.Random(0))] for _ in range(5)]
