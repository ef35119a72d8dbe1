"""Which worlds are played, and which are read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from marlab.lab.errors import UserError
from marlab.market.clones.settings import CloneConfig
from marlab.market.clones.worlds import FIT, HELD_OUT, VALIDATION, parts, planned, read_all
from marlab.market.simulator.seating import OURS
from tests.market.clone_cases import small_worlds, write_small_worlds


def test_everybody_plays_equally_often() -> None:
    specs = planned(CloneConfig(worlds=26))
    count = Counter(name for spec in specs for name in spec.agents)
    assert OURS in count and max(count.values()) - min(count.values()) <= 1
    assert {spec.n_processes for spec in specs} == {2, 3, 4} and len({spec.world_id for spec in specs}) == 26
    assert planned(CloneConfig(worlds=26)) == specs


def test_experts_join_the_population() -> None:
    specs = planned(CloneConfig(experts=("GreedyStdAgent",), worlds=3, population=("RandomStdAgent",)))
    assert {name for spec in specs for name in spec.agents} == {"GreedyStdAgent", "RandomStdAgent"}


def test_worlds_have_three_parts() -> None:
    found = parts(40, CloneConfig())
    assert np.bincount(found).tolist() == [30, 4, 6] and (parts(40, CloneConfig()) == found).all()
    assert sorted(parts(3, CloneConfig())) == [FIT, VALIDATION, HELD_OUT]


def test_folders_that_cannot_be_fitted_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a folder"):
        read_all(tmp_path / "none", ("AS0",))
    with pytest.raises(UserError, match="holds 0"):
        read_all(tmp_path, ("AS0",))
    write_small_worlds(tmp_path / "worlds")  # the folder of a run, or the one with its worlds
    for folder in (tmp_path, tmp_path / "worlds"):
        assert [w.world_id for w in read_all(folder, ("AS0",))] == [w.world_id for w in small_worlds()]
    with pytest.raises(UserError, match="Nobody plays in none"):
        read_all(tmp_path, ("Nobody",))
    (tmp_path / "broken.parquet").write_bytes(b"x")
    with pytest.raises(UserError, match="not a log of a market world"):
        read_all(tmp_path, ("AS0",))
