"""docs/reference/market-files.md names every field of logs and samples; tests/test_docs.py runs its examples."""

from __future__ import annotations

import re
from pathlib import Path

from marlab.market.logs.daystate import DayState
from marlab.market.logs.worldlog import TABLES
from marlab.market.samples.dataset import schema
from marlab.market.samples.options import Sizes
from tests.market.sample_tools import tiny_world

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "market-files.md").read_text(encoding="utf-8")


def test_every_field_is_on_the_page() -> None:
    """World logs, their meta data, mornings and samples: a new column needs a line."""
    meta = tiny_world().meta
    columns = {column for kinds in TABLES.values() for column in kinds}
    columns |= {column for kinds in schema(Sizes()).values() for column in kinds}
    names = {*columns, *DayState._fields, *meta, *meta["spec"], *meta["agents"][0]}
    bounds = re.compile(r"(buy|sell)_(quantity|price|day)_(min|max)")  # named by the first and the last of a side
    assert not sorted(name for name in names if f"`{name}`" not in PAGE and not bounds.fullmatch(name))
