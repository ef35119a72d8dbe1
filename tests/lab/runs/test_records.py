"""What is recorded of a run, and lists of runs that survive broken folders."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from marlab.lab.errors import UserError
from marlab.lab.report.facts import read_all
from marlab.lab.runs.lock import Owner
from marlab.lab.runs.records import abandon_run, find_run, plan_run, read_run
from marlab.lab.runs.run import Run, RunOptions
from tests.lab.tiny import TinyConfig, train

CONFIG = TinyConfig()


def test_a_dead_process_is_not_running(tmp_path: Path) -> None:
    train(replace(CONFIG, total=2), tmp_path / "a", resume=False)
    record = json.loads((tmp_path / "a" / "run.json").read_text())
    record["status"] = "running"  # what kill -9 leaves behind
    (tmp_path / "a" / "run.json").write_text(json.dumps(record))
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for owner in (Owner(dead.pid, socket.gethostname(), "1"), Owner(os.getpid(), socket.gethostname(), "1")):
        (tmp_path / "a" / "lock").write_text(json.dumps(vars(owner)))
        assert read_run(tmp_path / "a").status == "interrupted"
        assert read_run(tmp_path / "a").reason == "the process died"
    train(replace(CONFIG, total=2), tmp_path / "a", resume=True)
    info = read_run(tmp_path / "a")
    assert info.status == "finished" and info.attempts[0]["reason"] == "the process died"


def test_planned_and_abandoned_runs(tmp_path: Path) -> None:
    planned = plan_run("tiny/a", "beat random", "after the fix", ("x",), "g", tmp_path)
    assert planned.status == "planned" and planned.config() == {}
    with pytest.raises(UserError, match="exists already"):
        plan_run("tiny/a", None, None, root=tmp_path)
    with pytest.raises(UserError, match="expected world/name"):
        plan_run("tiny", None, None, root=tmp_path)
    with Run.open("tiny", CONFIG, RunOptions(name="a", tags=("y",)), root=tmp_path):
        pass
    started = find_run("a", tmp_path)
    assert (started.status, started.goal, started.tags, started.group) == ("finished", "beat random", ["x", "y"], "g")
    assert abandon_run(started, "a typo in the reward").reason == "a typo in the reward"
    with pytest.raises(UserError, match="was abandoned \\(a typo"):
        Run.open("tiny", CONFIG, RunOptions(name="a", resume=True), root=tmp_path)


def test_listing_survives_broken_directories(tmp_path: Path) -> None:
    plan_run("tiny/good", None, None, root=tmp_path)
    for name, text in {"cut": '{"schema": 1, "wor', "newer": '{"schema": 99}', "list": "[]"}.items():
        (tmp_path / "tiny" / name).mkdir()
        (tmp_path / "tiny" / name / "run.json").write_text(text)
    runs, problems = read_all(tmp_path)
    assert [r.name for r in runs] == ["good"] and len(problems) == 3
    with pytest.raises(UserError, match="did you mean tiny/good"):
        find_run("tiny/god", tmp_path)
