"""Agreement is counted: equal worlds, and worlds with one change each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from marlab.market.logs.worldlog import AGREED
from marlab.market.vector.replay import Recorded, Replayed, replay_moves
from marlab.market.verify.compare import compare, total
from tests.market.vector_worlds import recorded_worlds


@pytest.fixture(scope="module")
def pair() -> tuple[Recorded, Replayed]:
    world = next(w for w in recorded_worlds() if (w.tables["negotiations"]["outcome"] == AGREED).sum() > 3)
    return world, replay_moves([world])[0]


def test_a_true_replay_agrees(pair: tuple[Recorded, Replayed]) -> None:
    found = compare(*pair)
    assert found.equal == 1 and found.same_contracts == found.contracts > 3 and found.more_contracts == 0
    assert found.same_ends == found.negotiations and not [c for c in found.causes if not c.startswith("(agrees)")]


def test_one_changed_number_is_found(pair: tuple[Recorded, Replayed]) -> None:
    world, again = pair
    balance = again.balance.copy()
    balance[2, 0] += 1.0
    found = compare(world, replace(again, balance=balance))
    assert found.equal == 0 and any("balance differ first on the morning of day 2" in c for c in found.causes)
    assert again.ends is not None
    units = again.ends["units"].copy()
    units[np.flatnonzero(units)[0]] += 1
    found = compare(world, replace(again, ends={**again.ends, "units": units}))
    assert found.same_contracts == found.contracts - 1 and found.more_contracts == 1


def test_worlds_add_up(pair: tuple[Recorded, Replayed]) -> None:
    one = compare(*pair)
    both = total([one, one])
    assert both.worlds == 2 and both.contracts == 2 * one.contracts and both.largest == one.largest
