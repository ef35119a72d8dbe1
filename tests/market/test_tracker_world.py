"""A real world, recorded and exported: its tracker files hold the same games, and make the same samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from marlab.market.features import FeatureOptions
from marlab.market.l1 import L1Options
from marlab.market.logs import WorldLog, read_world, write_world
from marlab.market.samples import SampleOptions, extract
from marlab.market.tracker import read_tracker, write_tracker
from tests.market.test_tracker import assert_same

pytest.importorskip("scml")
from marlab.market.record import record_world
from marlab.market.worlds import WorldSpec

NUMBERS = {"negotiation", "seq"}
"""Columns that only number things inside their file."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> WorldLog:
    """Twelve days, three levels, agents that decide jointly and agents that do not."""
    kinds = ("SyncRandomStdAgent", "GreedyStdAgent", "RandomStdAgent")
    spec = WorldSpec("tracked", 3, 5, 12, (0, 0, 0, 1, 1, 1, 2, 2, 2), kinds * 3, (True,) * 9)
    path = tmp_path_factory.mktemp("world") / "tracked.parquet"
    write_world(path, record_world(spec))
    return read_world(path)


def test_an_exported_world_reads_back_to_the_same_logs(world: WorldLog, tmp_path: Path) -> None:
    decisions = 0
    for log in world.tracked():
        assert_same(read_tracker(write_tracker(log, tmp_path)), log)
        decisions += len(log.decisions["seq"])
    assert decisions > 500 and len(list(tmp_path.iterdir())) == 9


GUIDE = SampleOptions()
ECONOMIC = SampleOptions(L1Options(rules="economic"), FeatureOptions(channels=12, extra=True))


@pytest.mark.parametrize("options", [GUIDE, ECONOMIC], ids=["guide", "economic"])
def test_an_exported_world_makes_the_same_samples(world: WorldLog, tmp_path: Path, options: SampleOptions) -> None:
    for log in world.tracked():
        expected, found = (extract(x, options) for x in (log, read_tracker(write_tracker(log, tmp_path))))
        assert expected.logs == found.logs
        assert expected.tables.keys() == found.tables.keys()
        for table, columns in expected.tables.items():
            assert columns.keys() == found.tables[table].keys()
            for name in columns.keys() - NUMBERS:
                np.testing.assert_array_equal(found.tables[table][name], columns[name], err_msg=f"{table}.{name}")
