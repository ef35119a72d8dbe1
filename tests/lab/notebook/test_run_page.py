from __future__ import annotations

from pathlib import Path

import pytest

from marlab.lab.notebook import run_page
from marlab.lab.notebook.panels import Contribution, Page, Panel
from marlab.lab.notebook.run_page import MOST_SINGLE, interval_panels, write_run, write_single
from marlab.lab.notebook.sheet import Sheet
from marlab.lab.runs.records import RunInfo, read_run
from tests.lab.report.cases import make_run

HOSTILE = "<script>alert(1)</script>"


def written(root: Path, info: RunInfo) -> str:
    sheet = Sheet(info.path / "report" / "index.html", root / "_notebook", root / "index.html")
    write_run(info, sheet, {})
    return sheet.file.read_text()


def test_the_verdict_is_said_before_everything_and_the_form_comes_last(tmp_path: Path) -> None:
    sentence = {"key": "lab.compare.equal", "numbers": {"name": "a", "other": "b", "what": "score", "value": 1.0}}
    text = written(tmp_path, read_run(make_run(tmp_path, verdict=[sentence])))
    order = [
        "a and b are equal",
        'id="look"',
        'id="results"',
        'id="curves"',
        'id="figures"',
        'id="settings"',
        'id="origin"',
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert "marlab fish train --name a" in text
    assert ".json" not in text.partition("<main")[2]


def test_names_of_strangers_are_texts(tmp_path: Path) -> None:
    info = read_run(make_run(tmp_path, goal=HOSTILE, command=HOSTILE, results={HOSTILE: 1}, tags=[HOSTILE]))
    assert HOSTILE not in written(tmp_path, info)


def test_a_world_has_panels_and_pages_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = Contribution(
        [Panel("table", "scores", {"columns": [], "rows": []}, place="replay")],
        [Page("day-3", "The third day", [Panel("facts", "", [])], "one day")], results=True,
    )  # fmt: skip
    monkeypatch.setattr(run_page, "contribution", lambda info: given)
    info = read_run(make_run(tmp_path))
    text = written(tmp_path, info)
    assert 'data-kind="table" data-name="index-0"' in text
    assert '<a href="day-3.html">The third day</a>' in text
    assert '<th scope="row">survival' not in text  # the panels replace the plain table
    assert 'href="index.html"' in (info.path / "report" / "day-3.html").read_text()


def test_what_a_world_cannot_show_is_said_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from marlab.lab.errors import UserError

    def refuse(info: RunInfo) -> Contribution:
        raise UserError("The log is torn.")

    monkeypatch.setattr(run_page, "contribution", refuse)
    assert "The log is torn." in written(tmp_path, read_run(make_run(tmp_path)))


def test_results_of_one_unit_are_laid_beside_each_other(tmp_path: Path) -> None:
    results = {name: {"value": 1, "low": 0, "high": 2, "unit": "share"} for name in "ab"} | {"c": 5}
    [panel] = interval_panels(read_run(make_run(tmp_path, results=results)))
    assert [row["name"]["en"] for row in panel.data["rows"]] == ["a", "b"]
    assert interval_panels(read_run(make_run(tmp_path / "one"))) == []


def test_one_file_stays_within_its_size(tmp_path: Path) -> None:
    path = make_run(tmp_path)
    (path / "media" / "long.mp4").write_bytes(b"0" * 3_000_000)
    target = write_single(read_run(path), tmp_path / "a.html")
    text = target.read_text()
    assert target.stat().st_size <= MOST_SINGLE
    assert "data:image/png;base64," in text
    assert "not in this file" in text
    assert [file.name for file in tmp_path.iterdir() if file.name != "fish"] == ["a.html"]


def test_a_panel_that_would_fill_the_file_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = Contribution([Panel("table", "scores", "x", parts={"all": lambda: "y" * 5_000_000})])
    monkeypatch.setattr(run_page, "contribution", lambda info: given)
    target = write_single(read_run(make_run(tmp_path)), tmp_path / "a.html")
    assert target.stat().st_size <= MOST_SINGLE
    assert "not in this file" in target.read_text()
