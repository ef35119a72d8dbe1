"""A diagnosis: its files, tables and pictures, runs of every kind, and what it refuses."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from marlab.hunt.data.collect import collect
from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.diagnose.config import DiagnoseConfig, main
from marlab.hunt.diagnose.ppo import open_ppo_run
from marlab.hunt.diagnose.work import diagnose, verdict_of
from marlab.hunt.game.config import game_config
from marlab.lab.errors import UserError
from marlab.lab.runs.run import RunOptions
from marlab.lab.runs.stopping import Stopping
from marlab.lab.verdict import texts
from tests.hunt.diagnose.conftest import Runs


def test_all_modules_together(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(runs["goals"]), "--runs", *(str(runs[k]) for k in ("world", "ppo", "reply"))]
    assert main([*words, "--episodes", "8", "--no-figures"]) == 0
    printed = capsys.readouterr().out
    out = runs["goals"] / "diagnose"
    stored = json.loads((out / "report.json").read_text(), parse_constant=pytest.fail)  # strict: no NaN
    modules = [v["module"] for v in stored["verdicts"]]
    assert modules == ["data", "goal VAE", "MOA", "belief", "world model", "PPO", "PPO"]
    for verdict in stored["verdicts"]:
        assert verdict["status"] in ("pass", "fail", "blocked")
        line = next(x for x in printed.splitlines() if x.startswith(verdict["module"]) and verdict["run"] in x)
        assert verdict["status"] in line and verdict["decided_by"] in line
    rates = next(t for s in stored["sections"] for t in s["tables"] if t["title"].startswith("Players"))
    assert [h for h in rates["header"] if "rate" in h] == ["teleport rate", "vanish rate", "ghost rate"]


def test_pictures_stand_on_the_page(runs: Runs, tmp_path: Path) -> None:
    report = diagnose(DiagnoseConfig(run=str(runs["ppo"]), output_dir=tmp_path, episodes=8))
    page = (tmp_path / "report.md").read_text()
    shown = [picture.file for section in report.sections for picture in section.pictures]
    assert len(shown) == 2 and set(shown) == {path.name for path in tmp_path.glob("*.png")}
    assert all(name in page for name in shown)
    assert not re.search(r"\bD\d+|lab note", page)  # no numbers of lists that readers do not have


def test_a_collect_run_alone_gets_a_verdict_on_its_data(runs: Runs, tmp_path: Path) -> None:
    report = diagnose(DiagnoseConfig(run=str(runs["data"]), output_dir=tmp_path, figures=False))
    assert [str(v.status) for v in report.verdicts] == ["pass"]
    assert report.status("data") == "pass" and report.status("MOA") is None
    assert not list(tmp_path.glob("*.png"))


def test_a_diagnosis_that_is_stopped_reports_what_it_has_measured(runs: Runs, tmp_path: Path) -> None:
    config = DiagnoseConfig(str(runs["data"]), (str(runs["ppo"]),), output_dir=tmp_path, figures=False, episodes=8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stopping, "should_stop", lambda self: True)
        report = diagnose(config)
    assert (report.measured, report.left) == (1, 1) and (tmp_path / "report.md").exists()
    first, second, third = texts(verdict_of(report), str(report.out))
    assert first == "All 1 modules pass their gates." and second == "The time was too short for 1 of 2 parts."
    assert str(tmp_path) in third


def test_a_diagnosis_can_be_repeated_exactly(runs: Runs, tmp_path: Path) -> None:
    pages = []
    for name in ("a", "b"):
        diagnose(DiagnoseConfig(run=str(runs["goals"]), output_dir=tmp_path / name, figures=False, episodes=8))
        pages.append((tmp_path / name / "report.md").read_text())
    assert pages[0] == pages[1]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (DiagnoseConfig(), "Say which run"),
        (DiagnoseConfig(run="no-such-run-anywhere"), "There is no run"),
    ],
)
def test_refusals(config: DiagnoseConfig, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=said):
        diagnose(config)


def test_a_run_of_another_kind_is_refused(runs: Runs, tmp_path: Path) -> None:
    record = json.loads((runs["data"] / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps({**record, "kind": "fish"}))
    with pytest.raises(UserError, match="cannot be diagnosed"):
        diagnose(DiagnoseConfig(run=str(tmp_path)))


def test_a_training_without_its_metrics_is_refused(runs: Runs, tmp_path: Path) -> None:
    shutil.copytree(runs["ppo"], tmp_path / "copied")
    (tmp_path / "copied" / "metrics.jsonl").unlink()
    with pytest.raises(UserError, match="no metrics to diagnose"):
        open_ppo_run(tmp_path / "copied", "copied")


def test_data_of_another_game_is_refused(runs: Runs, tmp_path: Path) -> None:
    other = collect(
        HuntCollectConfig(game_config("msh_2p_4x4"), rows=200), RunOptions(output_dir=tmp_path / "d"), quiet=True
    ).path
    with pytest.raises(UserError, match=r"another game|grid"):
        diagnose(DiagnoseConfig(run=str(runs["goals"]), data=other))
