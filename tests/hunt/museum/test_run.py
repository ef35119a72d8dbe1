"""A visit: its files, and going on after a stop."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marlab.hunt.museum import run as museum_run
from marlab.hunt.museum.command import EXHIBITS, MuseumConfig, main
from marlab.hunt.museum.run import Exhibit, Finding, exhibit, visit
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import Run, RunOptions


def test_a_visit_leaves_figures_and_a_page(tmp_path: Path) -> None:
    words = ["stale-actions", "--rows", "800", "--output-dir", str(tmp_path / "run")]
    assert main(words) == 0
    findings = json.loads((tmp_path / "run" / "museum.json").read_text())
    assert findings["stale-actions"]["appeared"] and (tmp_path / "run/figures/stale-actions.png").is_file()
    wrong = findings["stale-actions"]["figures"]["agreement"]["global order, as the original"]
    assert wrong[0] == 1.0 and max(wrong[1:]) < 0.6
    assert "figures/stale-actions.png" in (tmp_path / "run" / "museum.md").read_text()
    assert read_run(tmp_path / "run").results["stale-actions"] == "the sign appears"


def test_a_visit_that_was_stopped_goes_on_and_a_missing_sign_is_an_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def fake(name: str) -> Exhibit:
        return Exhibit(name, "a sign", "by hand", lambda museum: (made.append(name), Finding("seen", False))[1])

    monkeypatch.setattr(museum_run, "exhibit", fake)
    config = MuseumConfig("stale-actions", ("unscaled-beta",))
    with monkeypatch.context() as stopping:
        stopping.setattr(Run, "should_stop", lambda self: True)
        run = visit(config, RunOptions(output_dir=tmp_path / "run"), quiet=True)
    assert read_run(run.path).status == "interrupted" and made == ["stale-actions"]
    words = ["stale-actions", "unscaled-beta", "--resume", "--output-dir", str(tmp_path / "run")]
    assert main(words) == 1 and made == ["stale-actions", "unscaled-beta"]


def test_every_exhibit_is_where_the_table_says() -> None:
    for name in EXHIBITS:
        shown = exhibit(name)
        assert shown.title and shown.sign and shown.command
