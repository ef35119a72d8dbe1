"""The one way to run a command: what is printed, what reaches the work, what a stop says, and exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from marlab.lab.command import WIDTH, RunCommand, begins_anew, in_short
from marlab.lab.config import Preset
from marlab.lab.device import threads
from marlab.lab.errors import UserError
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.verdict import say


@dataclass(frozen=True)
class CountConfig:
    """Counting, the smallest work."""

    to: int = 3
    """Where to stop."""
    step: int = 1
    """How far at once."""
    quiet: bool = False
    """Say nothing."""

    def run_config(self) -> CountConfig:
        return CountConfig(self.to, self.step)


def count(
    config: CountConfig, options: RunOptions, *, preset: Preset | None = None, command: Sequence[str] | None = None,
    quiet: bool = False,
) -> Run:  # fmt: skip
    with Run.open("toy", config.run_config(), options, preset=preset, command=command) as run:
        run.add_results({"counted": config.to})
        run.set_verdict(say("lab.at_the_best", what="The sum", value=config.to, interval=(1, 9), size="it", best=9))
        if config.to < 0:
            run.leave()
    return run


main = RunCommand("toy count", CountConfig, "tests.lab.test_command:count")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def record(name: str) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads((Path("runs/toy") / name / "run.json").read_text())
    return stored


def test_only_changed_settings_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--to", "5", "--name", "a"]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[0] == "settings: to=5"
    assert "The run is in runs/toy/a; `marlab note runs/toy/a` tells its story." in printed
    assert record("a")["command"] == "marlab toy count --to 5 --name a" and record("a")["results"] == {"counted": 5}


def test_settings_are_told_in_short() -> None:
    assert in_short("settings", {}) == "settings: all as by default"
    assert in_short("settings (preset x)", {"a": 1, "b": "", "c": "word"}) == "settings (preset x): a=1, b='', c=word"
    many = in_short("settings", {f"setting_{n}": n for n in range(20)})
    assert all(len(line) <= WIDTH for line in many.splitlines()) and len(many.splitlines()) == 3
    assert many.splitlines()[1].startswith("  setting_")


def test_the_verdict_stands_before_the_last_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--name", "v"]) == 0
    *_, verdict, last = capsys.readouterr().out.splitlines()
    assert verdict == "The sum is 3 [1, 9] on it, and 9 is the best possible: nothing is missing."
    assert last.startswith("The run is in runs/toy/v")
    assert record("v")["verdict"][0]["numbers"]["value"] == 3


def test_quiet_says_nothing_and_does_not_change_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-q"]) == 0 and capsys.readouterr().out == ""
    with pytest.raises(UserError, match="exists already"):
        main([])  # the same run: how much is printed decides no result


def test_a_stopped_run_says_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--to", "-1", "--name", "s"]) == 0
    assert "Stopped (stopped on request)" in capsys.readouterr().out
    assert record("s")["status"] == "interrupted"
    assert main(["--to", "-1", "--name", "s", "--resume"]) == 0


def test_a_second_signal_says_how_to_go_on_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(run: Run, *sentences: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "set_verdict", interrupted)
    with pytest.raises(KeyboardInterrupt):
        main(["--name", "k"])
    assert "runs/toy/k; the same command with --resume goes on" in capsys.readouterr().err
    with pytest.raises(KeyboardInterrupt), begins_anew("marlab toy look"):
        raise KeyboardInterrupt
    assert "`marlab toy look ...` begins anew" in capsys.readouterr().err


def test_wrong_flags_are_refused_before_the_work_is_imported() -> None:
    broken = RunCommand("toy count", CountConfig, "no.such.module:count")
    with pytest.raises(UserError, match="expected a whole number"):
        broken(["--to", "x"])
    with pytest.raises(ModuleNotFoundError):
        broken([])


def test_background_detaches(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[Sequence[str], Path]] = []
    monkeypatch.setattr("marlab.lab.command.detach", lambda words, path: started.append((words, path)) or 4711)
    assert main(["--background", "--name", "b"]) == 0
    assert capsys.readouterr().out == "Process 4711 works in the background and logs to runs/toy/b/log.txt.\n"
    assert started == [(["toy", "count", "--background", "--name", "b"], Path("runs/toy/b"))]


def test_importing_it_is_light() -> None:
    code = "import sys, marlab.lab.command; sys.exit(any(m in sys.modules for m in ('torch', 'shtab', 'matplotlib')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(("flags", "expected"), [("", 1), ("--threads 2", 2)])
def test_a_run_computes_on_one_thread_unless_told(flags: str, expected: int) -> None:
    """Whatever torch would take on this machine: more than one do not repeat a training bit for bit."""
    with threads(3):
        assert main([*flags.split(), "--name", "a"]) == 0
        main.call(options=RunOptions(name="b"))
        assert torch.get_num_threads() == 3
    assert (record("a")["host"]["threads"], record("b")["host"]["threads"]) == (expected, 1)
    with pytest.raises(UserError, match="--threads is 0"):
        RunOptions(threads=0)
