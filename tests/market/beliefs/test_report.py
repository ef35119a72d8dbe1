"""Tables of beliefs."""

from __future__ import annotations

from marlab.market.beliefs import report
from marlab.market.beliefs.calibration import quality
from tests.market.beliefs.test_calibration import made_up
from tests.market.beliefs_cases import telling_observer


def test_tables_name_types_strangers_and_shares() -> None:
    observer = telling_observer((0.8, 0.2, 0.5))._replace(types=("a", "b"))
    found = quality(made_up(days=4), observer)
    text = report.as_markdown(observer, found, 5)
    assert "5 recorded worlds" in text and "| odd" in text and "stranger 0." in text
    numbers = report.numbers(found)
    assert numbers["strangers taken for strangers"] > numbers["types taken for strangers"]
    assert 0 < numbers["probability of the true type"] < 1
    assert len(report.verdict(found)) == 2
    assert report.as_json(observer, found, 5)["options"]["temper"] == observer.options.temper
