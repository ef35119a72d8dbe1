"""`marlab draw`: who draws what, what is refused, and that status and history of a run stay as they are."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from marlab.cli import main
from marlab.lab.errors import UserError
from marlab.lab.report.draw import draw
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.verdict import say


@dataclass(frozen=True)
class PondConfig:
    size: int = 3


PondConfig.__module__ = "marlab.pond.config"


def drawn(run: Run, config: PondConfig, quiet: bool) -> None:
    run.add_results({"size": config.size})
    run.set_verdict(say("lab.look"))
    run.figure("size.txt").write_text(str(config.size))


@pytest.fixture(autouse=True)
def pond(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    modules = {name: ModuleType(f"marlab.pond{name}") for name in ("", ".config", ".draw")}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, f"marlab.pond{name}", module)
    table = {"marlab.pond.config:PondConfig": "marlab.pond.draw:drawn"}
    vars(modules[".config"])["PondConfig"] = PondConfig
    vars(modules[".draw"]).update(DRAWERS=table, drawn=drawn)
    return table


@pytest.fixture
def run(tmp_path: Path) -> Run:
    with Run.open("pond", PondConfig(5), RunOptions(name="a"), root=tmp_path / "runs") as made:
        made.leave()
    return made


def test_a_run_is_drawn_and_stays_what_it_was(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = json.loads((run.path / "run.json").read_text())
    monkeypatch.chdir(tmp_path)
    assert main(["draw", "pond/a"]) == 0
    after = json.loads((run.path / "run.json").read_text())
    assert after["results"] == {"size": 5} and (run.path / "figures" / "size.txt").read_text() == "5"
    assert {**after, "results": {}, "verdict": []} == {**before, "results": {}, "verdict": []}
    assert not (run.path / "lock").exists() and "figures/size.txt" in (run.path / "note.md").read_text()
    assert "Next: `marlab note runs/pond/a`" in capsys.readouterr().out


def changed(run: Run, file: str = "run.json", **values: Any) -> None:
    stored = json.loads((run.path / file).read_text())
    (run.path / file).write_text(json.dumps({**stored, **values}))


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"config_type": "os.path:join"}, "was made by os.path:join, which nothing here draws"),
        ({"config_type": "marlab.pond.config:Other"}, "which nothing here draws"),
        ({"config_type": "marlab.nowhere.config:Other"}, "which nothing here draws"),
        ({"config_type": None}, "was made by something that is not recorded"),
        ({"status": "abandoned"}, "is abandoned: there is nothing to draw"),
        ({"status": "what"}, "expected one of planned"),
    ],
)
def test_what_cannot_be_drawn_is_a_sentence(run: Run, values: dict[str, Any], told: str) -> None:
    changed(run, **values)
    with pytest.raises(UserError, match=told):
        draw(read_run(run.path))


def test_damage_is_a_sentence(run: Run, pond: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    changed(run, "config.json", size="large")
    with pytest.raises(UserError, match=r"config.json"):
        draw(read_run(run.path))
    (run.path / "config.json").unlink()
    with pytest.raises(UserError, match="does not hold the settings"):
        draw(read_run(run.path))
    (run.path / "config.json").write_text('{"size": 1}')
    monkeypatch.setattr(sys.modules["marlab.pond.draw"], "drawn", lambda *_: {}["rows"])
    with pytest.raises(UserError, match=r"is damaged or of another version: KeyError: 'rows'"):
        draw(read_run(run.path))


def test_a_run_at_work_draws_itself(run: Run) -> None:
    options = RunOptions(output_dir=run.path, resume=True)
    with Run.open("pond", PondConfig(5), options), pytest.raises(UserError, match="is running"):
        draw(read_run(run.path))
