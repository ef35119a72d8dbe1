"""Runs: honest status, locks, safe points, time limits, resumption rules, planning."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from marlab.lab.config import Preset
from marlab.lab.errors import UserError
from marlab.lab.runs import budget
from marlab.lab.runs.checkpoint import CheckpointStore
from marlab.lab.runs.lock import Lock, Owner
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import Run, RunOptions, run_path
from tests.lab.clock import Clock
from tests.lab.tiny import TinyConfig, TinyTrainer, train

CONFIG = TinyConfig()


@dataclass(frozen=True)
class Growing(TinyConfig):
    MAY_GROW: ClassVar = ("total",)


def test_settings_that_may_grow_can_be_changed_in_a_run_that_goes_on(tmp_path: Path) -> None:
    for total, resume in ((1, False), (3, True)):
        with Run.open("tiny", Growing(total=total), RunOptions(output_dir=tmp_path / "a", resume=resume)):
            assert json.loads((tmp_path / "a" / "config.json").read_text())["total"] == total
    with pytest.raises(UserError, match="seed was 1 and is 2 now"):
        Run.open("tiny", Growing(total=5, seed=2), RunOptions(output_dir=tmp_path / "a", resume=True))
    assert json.loads((tmp_path / "a" / "config.json").read_text())["total"] == 3


def test_a_finished_run_explains_itself(tmp_path: Path) -> None:
    path = tmp_path / "tiny" / "a"
    train(replace(CONFIG, total=4), path, resume=False)
    info = read_run(path)
    assert info.status == "finished" and info.reason is None and info.seed == 1
    assert info.config() == {"seed": 1, "total": 4}
    assert info.versions["torch"] and info.host["cores"]
    assert len(info.attempts) == 1 and info.seconds() is not None
    assert [r["step"] for r in read_metrics(path / "metrics.jsonl")] == [1, 2, 3, 4]
    assert CheckpointStore(path / "checkpoints", "tiny").steps() == [2, 4]
    assert not (path / "lock").exists()


def test_an_existing_run_is_not_overwritten(tmp_path: Path) -> None:
    train(replace(CONFIG, total=2), tmp_path / "a", resume=False)
    with pytest.raises(UserError, match="exists already \\(finished\\); add --resume"):
        train(replace(CONFIG, total=2), tmp_path / "a", resume=False)
    with pytest.raises(UserError, match="another config \\(total was 2 and is 3 now\\)"):
        train(replace(CONFIG, total=3), tmp_path / "a", resume=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.tex").write_text("precious")
    with pytest.raises(UserError, match="not a run directory"):
        train(CONFIG, tmp_path / "b", resume=False)
    with pytest.raises(UserError, match=r"no run at .* to resume"):
        train(CONFIG, tmp_path / "c", resume=True)
    assert not (tmp_path / "c").exists()


def test_a_failure_is_recorded_with_its_traceback(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Run.open("tiny", CONFIG, RunOptions(output_dir=tmp_path / "a")):
        1 / 0  # noqa: B018
    info = read_run(tmp_path / "a")
    assert info.status == "failed" and info.reason == "ZeroDivisionError: division by zero"
    assert "1 / 0" in (tmp_path / "a" / "log.txt").read_text()


def test_a_slow_first_unit_does_not_end_a_run_long_before_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr("marlab.lab.runs.run.time.monotonic", lambda: clock[0])
    run = Run.open("fish", TinyConfig(), RunOptions(output_dir=tmp_path / "a", time_limit=100.0 / 60))
    clock[0] += 30.0
    while not run.should_stop():
        clock[0] += 1.0
    assert 190.0 < clock[0] < 200.0  # it would be 155 if the first unit's reserve of 45 s were kept for ever
    monkeypatch.undo()
    with run:
        pass


def test_a_run_that_stopped_for_its_time_limit_says_so_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Run.open("tiny", CONFIG, RunOptions(output_dir=tmp_path / "a", time_limit=1.0)) as run:
        monkeypatch.setattr(run.budget, "next_unit_is_too_long", lambda: True)
        assert run.should_stop()
        monkeypatch.setattr(run.budget, "next_unit_is_too_long", lambda: False)  # the last checkpoint was quick
        run.stop()
    assert read_run(tmp_path / "a").reason == "time limit"


def test_the_time_limit_ends_a_run_with_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, iterate = Clock(), TinyTrainer.iterate
    start = clock.now

    def for_half_a_second(self: TinyTrainer) -> Any:
        clock.now += 0.5
        return iterate(self)

    monkeypatch.setattr(budget, "time", clock)
    monkeypatch.setattr(TinyTrainer, "iterate", for_half_a_second)
    run = train(replace(CONFIG, total=100_000), tmp_path / "a", resume=False, time_limit=6.0 / 60)
    assert 4.0 <= clock.now - start < 6.0
    info = read_run(tmp_path / "a")
    assert info.status == "interrupted" and info.reason == "time limit" and run.exit_code == 0
    done = read_metrics(tmp_path / "a" / "metrics.jsonl")[-1]["step"]
    assert CheckpointStore(tmp_path / "a" / "checkpoints", "tiny").steps()[-1] == done > 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_a_run_at_a_safe_point(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "a"
    code = (
        "from pathlib import Path; from tests.lab.tiny import *\n"
        f"raise SystemExit(train(TinyConfig(total=100_000), Path({str(path)!r}), False).exit_code)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) as process:
        _stop_and_look(process, path, number)


def _stop_and_look(process: subprocess.Popen[bytes], path: Path, number: signal.Signals) -> None:
    store = CheckpointStore(path / "checkpoints", "tiny")
    deadline = time.monotonic() + 60
    while not store.steps() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert read_run(path).status == "running"
    with pytest.raises(UserError, match=f"Process {process.pid} is working on"):
        train(replace(CONFIG, total=100_000), path, resume=True)  # two processes on one run
    process.send_signal(number)
    assert process.wait(30) == 128 + number
    assert process.stderr is not None and b"stopping at the next safe point" in process.stderr.read()
    info = read_run(path)
    assert info.status == "interrupted" and info.reason == f"stopped by {number.name}"
    assert store.steps()[-1] == read_metrics(path / "metrics.jsonl")[-1]["step"]


def _die_in_a_start(path: Path, function: str, call: int) -> None:
    """Start a run and be killed in place of the given call of a function."""
    owner = Path if function == "unlink" else os
    real, calls = getattr(owner, function), itertools.count(1)

    def die(*args: Any, **kwargs: Any) -> Any:
        if next(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)

    setattr(owner, function, die)
    Run.open("tiny", replace(CONFIG, total=2), RunOptions(output_dir=path))


@pytest.mark.parametrize(
    ("function", "call", "left"),
    [
        ("link", 1, {".lock"}),
        ("unlink", 1, {".lock", "lock"}),
        ("replace", 1, {"lock", ".run"}),
        ("replace", 2, {"lock", "run", ".config"}),
        ("replace", 3, {"lock", "run", "config", ".run"}),
    ],
)
def test_a_start_that_was_killed_can_be_made_again(tmp_path: Path, function: str, call: int, left: set[str]) -> None:
    path = tmp_path / "a"
    path.mkdir()
    (path / "log.txt").write_text("written by --background\n")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.lab.tiny", "torch.utils.tensorboard"])  # imported once
    process = context.Process(target=_die_in_a_start, args=(path, function, call))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    found = {entry.name for entry in path.iterdir()} - {"log.txt"}
    assert {re.match(r"\.?[a-z]+", entry).group() for entry in found} == left  # type: ignore[union-attr]
    assert "run" not in left or read_run(path).status == "planned"
    train(replace(CONFIG, total=2), path, resume=False)
    info = read_run(path)
    assert info.status == "finished" and len(info.attempts) == 1 and info.config() == {"seed": 1, "total": 2}
    assert (path / "log.txt").read_text().startswith("written by --background")


def test_what_is_not_left_by_a_start_is_never_touched(tmp_path: Path) -> None:
    dead = json.dumps(vars(Owner(1, socket.gethostname(), "never")))
    for number, files in enumerate(
        (
            {"lock": dead, "thesis.tex": "precious"},
            {"lock": "the key is under the mat"},
            {"lock": dead, "config.json": "{}"},
        )
    ):
        path = tmp_path / str(number)
        path.mkdir()
        for name, text in files.items():
            (path / name).write_text(text)
        with pytest.raises(UserError, match="not a run directory"):
            train(CONFIG, path, resume=False)
        assert {entry.name: entry.read_text() for entry in path.iterdir()} == files
    (tmp_path / "b").mkdir()
    lock = Lock(tmp_path / "b" / "lock")
    lock.acquire()
    with pytest.raises(UserError, match="is working on"):  # the other start is not through yet
        train(CONFIG, tmp_path / "b", resume=False)
    assert lock.is_held()
    lock.release()


def test_the_default_name_finds_the_same_run_again(tmp_path: Path) -> None:
    first = run_path("tiny", CONFIG, RunOptions(), Preset("v32", {}), tmp_path)
    assert first.name.startswith("v32-s1-") and first == run_path(
        "tiny", TinyConfig(), RunOptions(), Preset("v32", {}), tmp_path
    )
    assert first != run_path("tiny", replace(CONFIG, total=3), RunOptions(), Preset("v32", {}), tmp_path)


def test_a_phase_has_the_time_of_the_run_around_it_and_passes_its_signal_on(tmp_path: Path) -> None:
    options = RunOptions(output_dir=tmp_path / "whole", time_limit=5)
    with Run.open("tiny", TinyConfig(), options) as whole:
        with Run.open("tiny", TinyConfig(), RunOptions(output_dir=tmp_path / "phase")) as phase:
            assert phase.budget is whole.budget and not whole.should_stop()
            os.kill(os.getpid(), signal.SIGTERM)
            assert phase.should_stop()
            phase.leave()
        assert whole.should_stop()
        whole.leave()
    assert (phase.status, whole.status, whole.exit_code) == ("interrupted", "interrupted", 128 + signal.SIGTERM)
    with Run.open("tiny", TinyConfig(), RunOptions(output_dir=tmp_path / "later")) as later:
        assert not later.budget.limited
