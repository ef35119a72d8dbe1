"""Array agents beside real ones: the measures themselves, on worlds that were recorded and replayed."""

from __future__ import annotations

import numpy as np
import pytest

from marlab.market.logs.worldlog import AGREED
from marlab.market.verify.policies import COLUMNS, Beside, compare_policies, played_here, seen_in
from tests.market.vector_worlds import recorded_worlds


def test_measures_of_a_recorded_world() -> None:
    world = recorded_worlds()[4]  # Random alone
    seen = dict(zip(COLUMNS, seen_in(world)))
    assert seen["first offers made"] == 1 and seen["accepts"] == pytest.approx(0.1, abs=0.03)
    assert seen["accepts"] + seen["offers"] + seen["leaves"] == pytest.approx(1)
    assert seen["agreed"] == (world.tables["negotiations"]["outcome"] == AGREED).mean()
    assert seen["score, first level"] == pytest.approx(world.scores[world.level == 0].mean())


def test_random_does_here_what_it_does_there() -> None:
    world = recorded_worlds()[4]
    ours = dict(zip(COLUMNS, played_here(("RandomStdAgent",), [world], 30, 0)[0].T))
    seen = dict(zip(COLUMNS, seen_in(world)))
    for name, spread in (
        ("accepts", 0.02),
        ("units", 0.8),
        ("days ahead", 0.4),
        ("price position", 0.05),
        ("rounds", 1.5),
    ):
        assert np.mean(ours[name]) == pytest.approx(seen[name], abs=spread), name


def test_a_difference_counts_when_it_is_sure_and_large() -> None:
    assert Beside("a", 1.0, 1.5, -0.1, 1.1).agrees and Beside("a", 1.0, 1.01, 0.009, 0.011).agrees
    wrong = Beside("a", 1.0, 1.5, 0.3, 0.7)
    assert not wrong.agrees and "DIFFERS" in wrong.line()


def test_worlds_are_paired_by_their_config() -> None:
    worlds = [recorded_worlds()[4]] * 2
    found = compare_policies(("RandomStdAgent",), worlds, 4, 0)
    assert {beside.name for beside in found} <= set(COLUMNS) and len(found) >= 12
