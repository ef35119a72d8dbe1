"""Hunts in Chromium: replays show what was recorded, and a human plays to the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from marlab.hunt.watch.record import Episode
from marlab.lab.notebook.serve import Notebook
from marlab.lab.notebook.site import build
from tests.hunt.watch.conftest import planned  # noqa: F401  the episode with a planning agent
from tests.lab.notebook.browser import faults, open_page, unspoken
from tests.lab.notebook.served import serving
from tests.lab.report.cases import make_run

HOSTILE = "<b>hop</b>"


@pytest.fixture(scope="module")
def run(planned: Episode, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: F811
    root = tmp_path_factory.mktemp("pages") / "runs"
    kind = "marlab.hunt.selfplay.config:HopTrainConfig"
    path = make_run(root, "hunt/hop", {}, config_type=kind, stages=[])
    told = planned.to_dict()
    told["players"][1] = HOSTILE
    (path / "media").mkdir(exist_ok=True)
    (path / "media" / "episode.json").write_text(json.dumps(told))
    build(root)
    return path


def test_a_replay_shows_beliefs_choices_and_searches(page: Any, run: Path, planned: Episode) -> None:  # noqa: F811
    open_page(page, run / "report" / "index.html")
    for frame, moment in enumerate(planned.moments[:3]):
        page.locator(".player input[type=range]").fill(str(frame))
        assert page.locator(".minds").get_attribute("data-step") == str(moment.scene.t)
        for seat, thought in enumerate(moment.thoughts):
            mind = page.locator(f".mind[data-seat='{seat}']")
            assert float(mind.get_attribute("data-earned")) == pytest.approx(moment.earned[seat], abs=1e-4)
            if thought is None:
                continue
            assert mind.get_attribute("data-action") == str(moment.action[seat])
            beliefs = [float(each.get_attribute("data-stag")) for each in mind.locator(".opinion").all()]
            assert beliefs == pytest.approx([opinion.stag for opinion in thought.opinions], abs=1e-4)
            if thought.visits is not None and thought.q is not None:
                chosen = mind.locator("tr.picked")
                action = int(chosen.get_attribute("data-action"))
                assert action == moment.action[seat]
                assert float(chosen.get_attribute("data-visits")) == thought.visits[action]
                assert float(chosen.get_attribute("data-q")) == pytest.approx(thought.q[action], abs=1e-4)
    assert HOSTILE in page.locator("main").inner_text() and page.locator(".mind strong b").count() == 0
    assert faults(page) == [] and unspoken(page) == []


def test_the_index_leads_to_the_seat_by_its_name(page: Any, run: Path) -> None:
    open_page(page, run.parents[1] / "index.html")
    assert unspoken(page) == [] and page.get_by_role("link", name="Play a hunt yourself").count() == 1
    page.locator("#language").click()
    assert page.get_by_role("link", name="亲自参加狩猎").count() == 1


def test_without_a_server_the_seat_says_what_to_do(page: Any, run: Path) -> None:
    open_page(page, run.parents[1] / "_notebook" / "hunt" / "play.html")
    assert "marlab report --serve" in page.locator("main").inner_text()


def test_a_human_plays_to_the_end_and_the_game_is_kept(page: Any, run: Path) -> None:
    root = run.parents[1]
    with serving(Notebook(root)) as server:
        open_page(page, f"{server.address}_notebook/hunt/play.html")
        page.select_option("select >> nth=0", "rules")
        page.select_option("select >> nth=1", "2")
        page.get_by_role("button", name="Start a game").click()
        seat = page.locator(".board-pair")
        page.wait_for_selector(".board-pair[data-step='0']")
        assert page.locator(".mind[data-stag]").count() == 3  # what the others believe of the human
        assert faults(page) == [] and unspoken(page) == []
        page.locator(".board-side canvas").press("ArrowUp" if _may(page, "up") else "ArrowDown")
        page.wait_for_selector(".board-pair[data-step='1']")
        page.reload()  # the game goes on where it was
        page.wait_for_selector(".board-pair[data-step='1']")
        step = 1
        while True:
            page.wait_for_function(
                "s => { const e = document.querySelector('.board-pair').dataset;"
                " return e.over === 'true' || Number(e.step) >= s; }",
                arg=step,
            )
            if seat.get_attribute("data-over") == "true":
                break
            name = next(each for each in ("hunt stag", "hunt hare", "stay") if _may(page, each))
            page.locator(f".pad button[data-action='{name}']").click()
            step += 1
        (file,) = (root / "hunt" / "human").glob("*.json")
        stored = json.loads(file.read_text())
        earned = [float(x) for x in str(seat.get_attribute("data-earned")).split()]
        assert stored["episodes"][0]["frames"][-1]["earned"] == pytest.approx(earned)
        assert stored["human_seat"] == 1 and file.name in page.locator(".seat-status").inner_text()
        page.get_by_role("button", name="Once more").click()
        page.wait_for_selector(".board-pair[data-episode='1'][data-step='0']")


def _may(page: Any, name: str) -> bool:
    return bool(page.locator(f".pad button[data-action='{name}']").is_enabled())
