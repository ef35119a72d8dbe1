from __future__ import annotations

from pathlib import Path

from marlab.lab.notebook.panels import contribution
from marlab.lab.notebook.sweep_page import sweep
from marlab.lab.runs.files import write_json
from marlab.lab.runs.records import RunInfo, read_run
from tests.lab.report.cases import make_run

KIND = "marlab.lab.sweep.config:SweepConfig"
COMPARISON = {
    "measure": "score", "unit": "share", "against": "lr=1",
    "rows": [
        {"name": "lr=1", "mean": {"value": 0.5, "low": 0.4, "high": 0.6}, "outcome": None, "difference": None,
         "by_training": [{"value": 0.4}, {"value": 0.6}]},
        {"name": "lr=2", "mean": {"value": 0.8, "low": 0.7, "high": 0.9}, "outcome": "within noise",
         "difference": {"value": 0.3, "low": -0.1, "high": 0.7}, "by_training": [{"value": 0.8}]},
    ],
    "settings": {"lr": ["1", "2"]},
}  # fmt: skip


def swept(tmp_path: Path) -> RunInfo:
    path = make_run(tmp_path, "sweep/lr", config_type=KIND)
    judged = {"results": ["survival"], "metric": None, "better": "higher"}
    make_run(path, "trials/one", judged_by=judged)
    (path / "trials" / "torn").mkdir()
    (path / "trials" / "torn" / "run.json").write_text("{")
    return read_run(path)


def test_settings_stand_side_by_side_and_trainings_have_links(tmp_path: Path) -> None:
    info = swept(tmp_path)
    write_json(info.path / "comparison.json", COMPARISON)
    drawn, table, trials, settings = [panel.data for panel in _ordered(info)]
    assert [(row["name"], row["value"], row["marks"]) for row in drawn["rows"]] == [
        ("lr=1", 0.5, [0.4, 0.6]), ("lr=2", 0.8, [0.8]),
    ]  # fmt: skip
    assert drawn["reference"] == {"name": "lr=1", "value": 0.5}
    assert [row[2] for row in table["rows"]] == ["compare.outcome.the_reference", "compare.outcome.within_noise"]
    assert trials["rows"][0][0] == {"text": "one", "href": "../trials/one/report/index.html"}
    assert trials["rows"][0][1] == {"value": 0.98, "low": 0.97, "high": 0.99}
    assert trials["rows"][1][0] == "torn"
    assert settings["rows"] == [["lr", "1", "2"]]


def _ordered(info: RunInfo) -> list:  # type: ignore[type-arg]
    return sorted(contribution(info).panels, key=lambda panel: panel.place == "details")


def test_a_sweep_that_goes_on_shows_its_trainings(tmp_path: Path) -> None:
    assert [panel.title for panel in sweep(swept(tmp_path)).panels] == ["sweep.trials"]
