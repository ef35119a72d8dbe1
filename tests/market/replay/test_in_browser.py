"""The replay of a world in Chromium: it plays, scrubs, and shows the numbers of the log."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from marlab.lab.config import to_dict
from marlab.lab.notebook.site import build
from marlab.market.arena.report import write_seats
from marlab.market.logs.worldfile import read_world, write_world
from marlab.market.replay.world import WorldReplay
from tests.lab.notebook.browser import faults, open_page, unspoken
from tests.lab.report.cases import make_run
from tests.market.result_cases import some_result

HOSTILE = "<b>x</b>"
DAY = 5


@pytest.fixture(scope="module")
def run(logged: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tournament of the notebook with one replay; a factory has a name that is markup."""
    root = tmp_path_factory.mktemp("pages") / "runs"
    result = some_result(configs=4)
    kind = "marlab.market.arena.plan:PlayConfig"
    path = make_run(root, "market/cup", to_dict(result.config), config_type=kind, results={}, stages=[])
    write_seats(result.seats, path / "seats.parquet")
    shutil.copytree(logged / "logs", path / "logs")
    file = path / "logs" / "c000-t00-w.parquet"
    log = read_world(file)
    log.meta["spec"]["agents"][1] = HOSTILE
    write_world(file, log)
    build(root)
    return path


@pytest.fixture(scope="module")
def replay(run: Path) -> WorldReplay:
    return WorldReplay(run / "logs" / "c000-t00-w.parquet")


def go(page: Any, day: int) -> None:
    page.locator(".player input[type=range]").fill(str(day))
    page.wait_for_selector(f".talks[data-day='{day}']")


def numbers(page: Any, selector: str, attribute: str) -> list[float]:
    return [float(each.get_attribute(attribute)) for each in page.locator(selector).all()]


def test_a_day_shows_the_books_of_that_day(page: Any, run: Path, replay: WorldReplay) -> None:
    open_page(page, run / "report" / "world-c000-t00-w.html")
    told = replay.summary()
    for day in (0, DAY, told["days"] - 1):
        go(page, day)
        assert page.locator(".player").get_attribute("data-frame") == str(day)
        shown = numbers(page, ".books td[data-key=balance]", "data-value")
        assert shown == [balances[day + 1] for balances in told["balance"]]
        for flow in ("bought", "supplied", "produced", "shortfall", "stock"):
            values = numbers(page, f".books td[data-key={flow}]", "data-value")
            assert values == [units[day] for units in told["flows"][flow]]
    assert HOSTILE in page.locator(".books").inner_text() and page.locator(".books b").count() == 0


def test_it_plays_and_can_be_driven_by_keys(page: Any, run: Path) -> None:
    open_page(page, run / "report" / "world-c000-t00-w.html")
    page.select_option(".player select", "8")
    page.locator(".player .play").click()
    page.wait_for_function("() => Number(document.querySelector('.player').dataset.frame) >= 3")
    page.locator(".player canvas").focus()
    page.keyboard.press("Home")
    assert page.locator(".player").get_attribute("data-playing") == "no"
    page.keyboard.press("ArrowRight")
    assert page.locator(".player").get_attribute("data-frame") == "1"


def test_negotiations_ladders_and_reasons_are_those_of_the_log(page: Any, run: Path, replay: WorldReplay) -> None:
    open_page(page, run / "report" / "world-c000-t00-w.html")
    page.select_option(".chooser select", "0")
    part = replay.part(0)
    day = next(row[0] for _, row, said in part["negotiations"] if row[1] == 0 and said and row[0] > 0)
    go(page, day)
    mine = [(n, row, said) for n, row, said in part["negotiations"] if row[0] == day and 0 in row[1:3]]
    shown = [int(each.get_attribute("data-negotiation")) for each in page.locator(".talks tbody tr").all()]
    assert shown == [n for n, _, _ in mine]
    number, row, said = next(talk for talk in mine if talk[2])
    page.locator(f".talks tr[data-negotiation='{number}'] button").click()
    ladder = page.locator(f".ladder svg[data-negotiation='{number}']")
    ladder.wait_for()
    offers = [[int(x) for x in each.get_attribute("data-offer").split()] for each in ladder.locator("polygon").all()]
    assert offers == said
    partner = row[2] if row[1] == 0 else row[1]
    ids = [agent["id"] for agent in replay.log.agents]
    lines = [
        line
        for line in replay.reasons[0]
        if line["kind"] == "decision" and line["day"] == day and line["partner"] == ids[partner]
    ]
    rows = page.locator(".reasons tbody tr").all()
    assert [each.get_attribute("data-op") for each in rows] == [line["op"] for line in lines]
    assert [float(each.get_attribute("data-alpha")) for each in rows] == pytest.approx(
        [line["alpha"] for line in lines], abs=1e-4
    )
    for each, line in zip(rows, lines):
        worth = each.get_attribute("data-worth")
        assert (json.loads(worth) if worth else None) == (
            list(line["alternatives"].values()) if "alternatives" in line else None
        )
        assert line["rule"] in each.inner_text()


def test_contracts_by_delivery_day(page: Any, run: Path, replay: WorldReplay) -> None:
    open_page(page, run / "report" / "world-c000-t00-w.html")
    page.select_option(".chooser select", "2")
    go(page, DAY)
    told = replay.contracts()
    for side, attribute in (("buyer", "data-coming"), ("seller", "data-going")):
        slots = [0] * (replay.log.meta["league_horizon"] + 1)
        for signed, who, quantity, delivery in zip(told["day"], told[side], told["quantity"], told["delivery"]):
            if signed <= DAY and who == 2 and 0 <= delivery - DAY < len(slots):
                slots[delivery - DAY] += quantity
        chart = page.locator("figure[data-coming]")
        assert [int(x) for x in chart.get_attribute(attribute).split()] == slots


def test_every_word_is_said_and_nothing_serious_is_wrong(page: Any, run: Path) -> None:
    open_page(page, run / "report" / "world-c000-t00-w.html")
    go(page, DAY)
    assert faults(page) == []
    assert unspoken(page) == []
    page.locator("#language").click()
    go(page, DAY)
    assert "谈判" in page.locator("main").inner_text() and unspoken(page) == []


def test_the_tournament_survives_one_bad_agent(page: Any, run: Path) -> None:
    open_page(page, run / "report" / "index.html")
    text = page.locator("main").inner_text()
    assert "Strong(mode=a)" in text and "1.315" in text
    assert page.locator("a[href='world-c000-t00-w.html']").count() == 1 and unspoken(page) == []


def test_a_phone_has_no_sideways_scrolling(page: Any, run: Path) -> None:
    page.set_viewport_size({"width": 420, "height": 900})
    open_page(page, run / "report" / "world-c000-t00-w.html")
    go(page, DAY)
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
