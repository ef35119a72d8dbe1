"""The tank in Chromium: it plays, scrubs, and shows who lives and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marlab.fish.measure.pathfile import FILE
from marlab.lab.notebook.site import build
from tests.fish.cases import some_paths
from tests.lab.notebook.browser import faults, open_page, unspoken
from tests.lab.report.cases import make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pages") / "runs"
    kind = "marlab.fish.measure.config:EvalConfig"
    path = make_run(root, "fish/eval", {"checkpoint": "best"}, config_type=kind, stages=[])
    some_paths().write(path / FILE)
    build(root)
    return path


def go(page: Any, step: int) -> None:
    page.locator(".player input[type=range]").fill(str(step))


def test_scrubbing_shows_who_lives_and_the_view_of_one_fish(page: Any, run: Path) -> None:
    open_page(page, run / "report" / "index.html")
    page.wait_for_selector("[data-arena='0']")
    tank = page.locator("[data-alive]")
    for step, alive in ((0, "5 5"), (6, "5 5"), (7, "4 5"), (30, "4 5")):
        go(page, step)
        assert tank.get_attribute("data-alive") == alive
    page.locator(".one-fish input").fill("2")
    paths = some_paths()
    for step in (3, 12):
        go(page, step)
        gap = paths.position[0, 0, step, 2].astype(float) - paths.predator[0, 0, step, 0].astype(float)
        assert float(page.locator(".eye-facts").get_attribute("data-distance")) == pytest.approx(
            float(np.hypot(*gap)), abs=2e-3
        )
    page.locator(".one-fish input").fill("1")
    go(page, 20)
    assert "eaten at step 7" in page.locator(".eye-facts").inner_text()


def test_it_plays_to_the_end_and_stops(page: Any, run: Path) -> None:
    open_page(page, run / "report" / "index.html")
    page.wait_for_selector("[data-arena='0']")
    page.select_option(".player select", "8")
    page.locator(".player .play").click()
    page.wait_for_selector(".player[data-frame='30'][data-playing='no']")


def test_deaths_arenas_and_the_field(page: Any, run: Path) -> None:
    open_page(page, run / "report" / "index.html")
    maps = page.locator("svg.tank-map").all()
    assert [each.get_attribute("data-deaths") for each in maps] == ["2", "0"]
    assert maps[0].locator(".death").count() == 2
    page.select_option(".chooser select", "1")
    page.wait_for_selector("[data-arena='1']")
    page.get_by_role("button", name="west").click()
    assert page.locator("svg.field-map").get_attribute("data-heading") == "west"
    assert "side<b>step</b>" in page.locator("main").inner_text() and page.locator("main b").count() == 0


def test_every_word_is_said_and_nothing_serious_is_wrong(page: Any, run: Path) -> None:
    open_page(page, run / "report" / "index.html")
    page.wait_for_selector("[data-arena='0']")
    assert faults(page) == [] and unspoken(page) == []
    page.locator("#language").click()
    page.wait_for_selector("[data-arena='0']")
    assert "水池" in page.locator("main").inner_text() and unspoken(page) == []
