"""The quickstart, tiny but whole: killed once, taken up, reported, opened in a browser."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from marlab.cli import main
from marlab.lab.engine.tasks import EngineConfig
from marlab.lab.errors import UserError
from marlab.lab.report.facts import read_all
from marlab.lab.runs.records import read_run
from marlab.lab.verdict import texts
from marlab.market.clones import worlds
from marlab.quickstart import command
from marlab.quickstart.command import QuickstartConfig, quickstart, run_folder

pytest.importorskip("scml")
pytest.importorskip("jinja2")

STAGES = ("worlds", "online", "arena")
SERIAL = EngineConfig("serial")


def tiny() -> QuickstartConfig:
    """Four worlds of ten days, one generation of four worlds, ten games of two factories."""
    usual = QuickstartConfig()
    quick = {"generations": 1, "worlds": 4, "generation_days": 4, "days": (6, 8), "steer_worlds": 4, "steer_days": 6}
    return replace(
        usual,
        worlds=replace(usual.worlds, worlds=4, days=(10, 10), shapes=("2x2",), units=2, held_out=0.25, validation=0.25),
        online=replace(usual.online, hidden=(8,), shapes=("2x2",), **quick),
        play=replace(
            usual.play, population=("GreedyStdAgent",), shapes=("2x1",), days=(10, 10), configs=2, turns=1, trials=False
        ),
    )


def start(folder: Path) -> None:
    """A process of its own that works in `folder` until it is killed."""
    os.chdir(folder)
    quickstart(tiny(), "tiny", SERIAL)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path, int]]:
    """A quickstart that was killed after its first world and then ended: folder, first log, when that was written."""
    folder = tmp_path_factory.mktemp("quickstart")
    process = multiprocessing.get_context("spawn").Process(target=start, args=(folder,))
    process.start()
    logs: list[Path] = []
    while not logs:
        assert process.is_alive()
        time.sleep(0.02)
        logs = list((folder / run_folder("tiny", "worlds") / "worlds").glob("*.parquet"))
    process.kill()
    process.join()
    written = logs[0].stat().st_mtime_ns
    before = Path.cwd()
    os.chdir(folder)
    try:
        assert quickstart(tiny(), "tiny", SERIAL) == 0
        yield folder, logs[0], written
    finally:
        os.chdir(before)


@pytest.fixture
def inside(finished: tuple[Path, Path, int], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(finished[0])
    return finished[0]


@pytest.mark.long
def test_a_killed_quickstart_goes_on(finished: tuple[Path, Path, int], inside: Path) -> None:
    _, log, written = finished
    assert log.stat().st_mtime_ns == written  # a finished world is not played again
    runs = {info.name: info for info in read_all(Path("runs"))[0]}
    assert set(runs) == {"tiny", *(f"tiny-{stage}" for stage in STAGES)}
    assert all(info.status == "finished" and info.group == "tiny" for info in runs.values())
    assert [len(runs[name].attempts) for name in ("tiny", "tiny-worlds", "tiny-online")] == [2, 2, 1]
    assert all(runs[f"tiny-{stage}"].parent == "market/tiny" for stage in STAGES)


@pytest.mark.long
def test_a_finished_quickstart_only_shows_its_result(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record, page = run_folder("tiny") / "run.json", run_folder("tiny") / "report" / "quickstart.html"
    before = record.read_bytes(), page.read_bytes()
    assert quickstart(tiny(), "tiny", SERIAL) == 0
    assert (record.read_bytes(), page.read_bytes()) == before
    said = capsys.readouterr().out
    for word in ("10 worlds of 10 days in 2 markets", "trained minus its start is", str(page), "try next"):
        assert word in said


@pytest.mark.long
def test_other_settings_under_the_same_name_are_refused(inside: Path) -> None:
    other = replace(tiny(), play=replace(tiny().play, configs=3))
    with pytest.raises(UserError, match=r"tiny was made with play.configs = 2, and now it is 3; give another --name"):
        quickstart(other, "tiny", SERIAL)


@pytest.mark.long
def test_results_and_report_agree_with_the_stages(inside: Path) -> None:
    whole, recorded, online = (read_run(run_folder("tiny", stage)) for stage in ("", "worlds", "online"))
    arena = read_run(run_folder("tiny", "arena")).results
    page = (run_folder("tiny") / "report" / "quickstart.html").read_text()
    assert f"{recorded.results['decisions']:,} decisions of PenguinAgent" in page
    assert f"{abs(online.results['start minus rule']['value']):.3f}" in page
    first, second, last = texts(whole.verdict, str(whole.path))
    assert first in page and second in page and last.startswith(f"Next: open {whole.path}/report/quickstart.html")
    for agent in ("trained", "start", "rule", "PenguinAgent", "RandomStdAgent"):
        assert f"<td>{agent}</td>" in page
    assert whole.results["score PenguinAgent"]["value"] == arena["score PenguinAgent"]["value"]
    own = next(name for name in arena if name.endswith("weights=runs/market/tiny-online)"))
    assert whole.results["score trained"]["value"] == arena[own]["value"]
    assert "http" not in page.replace("http-equiv", "") and page.count('src="data:image/png;base64,') == 3


@pytest.mark.long
def test_the_note_keeps_the_report(inside: Path) -> None:
    page = run_folder("tiny") / "report" / "quickstart.html"
    before = page.read_bytes()
    assert main(["note", "market/tiny"]) == 0 and main(["report"]) == 0
    assert page.read_bytes() == before


@pytest.mark.long
def test_the_report_in_a_browser(inside: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("Chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for width in (360, 1100):
            page = browser.new_context(viewport={"width": width, "height": 900}).new_page()
            asked: list[str] = []
            page.on("request", lambda request, asked=asked: asked.append(request.url))
            page.goto((inside / run_folder("tiny") / "report" / "quickstart.html").as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
            assert [url for url in asked if not url.startswith("data:")] == [page.url]
        assert page.get_by_role("heading", level=1).inner_text().startswith("Quickstart")
        assert page.locator("table").first.locator("tbody tr").count() == 5
        browser.close()


def test_ctrl_c_stops_at_a_safe_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    planned = worlds.planned

    def stopped(config: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return planned(config)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(worlds, "planned", stopped)
    assert quickstart(tiny(), "tiny", SERIAL) == 130
    assert "The same command goes on from here: marlab quickstart --name tiny" in capsys.readouterr().out
    status = {info.name: info.status for info in read_all(Path("runs"))[0]}
    waiting = dict.fromkeys((f"tiny-{stage}" for stage in STAGES[1:]), "planned")
    assert status == {"tiny": "interrupted", "tiny-worlds": "interrupted", **waiting}


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["now"], "'now' is one word too many"),
        (["--name", "a b"], "--name is 'a b', expected up to 100 letters"),
        (["--workers", "0"], "workers is 0; it must be at least 1"),
        (["--workers", "two"], "--workers"),
        (["--fast"], "--fast"),
    ],
)
def test_bad_words_are_one_sentence(
    words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["quickstart", *words]) == 2
    said = capsys.readouterr().err
    assert told in said and said.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_what_is_missing_is_said_before_anything_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise UserError(f"There is no agent {name}")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "find_player", missing)
    with pytest.raises(UserError, match="no agent PenguinAgent"):
        quickstart(tiny())
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_no_run_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / run_folder("mine") / "thesis.txt"
    file.parent.mkdir(parents=True)
    file.write_text("ten years of work")
    with pytest.raises(UserError, match="exists already"):
        quickstart(tiny(), "mine", SERIAL)
    assert file.read_text() == "ten years of work"


def test_a_quickstart_of_any_name_finds_its_runs() -> None:
    config = QuickstartConfig().connected("second")
    assert config.online.clones == Path("runs/market/second-worlds/clones.npz")
    assert config.online.opponents[0] == "PenguinAgent" and config.online.start == "weak"
    assert "weights=runs/market/second-online)" in config.play.agents[0]
    assert config.play.against == config.play.agents[1] and config.play.agents[1].endswith("around_start.npz)")
    assert config.play.agents[2] == command.HEURISTIC and config.play.replace == "PenguinAgent"
