"""Runs in any folder are found, those that `--output-dir` put elsewhere too; a stranger's list leads nowhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from marlab.cli import main
from marlab.lab.runs import folders
from marlab.lab.runs.folders import ELSEWHERE, run_folders
from marlab.lab.runs.records import find_run, read_run
from marlab.lab.runs.run import Run, RunOptions
from tests.lab.report.cases import make_run


@dataclass(frozen=True)
class Config:
    seed: int = 0


def opened(path: Path, root: Path) -> Path:
    with Run.open("toy", Config(), RunOptions(output_dir=path), root=root) as run:
        pass
    return run.path


def test_runs_are_found_at_any_depth_and_parts_of_runs_are_not(tmp_path: Path) -> None:
    make_run(tmp_path, "fish/b")
    make_run(tmp_path / "studies" / "width", "fish/a")
    make_run(tmp_path / "fish" / "b", "phases/p1")
    for hidden in ("_notebook/x", ".trash/y"):
        make_run(tmp_path, hidden)
    make_run(tmp_path / "elsewhere", "hunt/c")
    (tmp_path / "linked").symlink_to(tmp_path / "elsewhere" / "hunt")  # folders of runs behind links are not searched
    (tmp_path / "fish" / "link").symlink_to(tmp_path / "elsewhere" / "hunt" / "c")  # runs that are links are runs
    found = [path.relative_to(tmp_path).as_posix() for path in run_folders(tmp_path)]
    assert found == ["elsewhere/hunt/c", "fish/b", "fish/link", "studies/width/fish/a"]
    assert run_folders(tmp_path / "nowhere") == []


def test_a_run_elsewhere_is_written_down_once_and_its_parts_never(tmp_path: Path) -> None:
    root, far = tmp_path / "work" / "runs", tmp_path / "disk" / "l2"
    opened(far, root)
    with Run.open("toy", Config(), RunOptions(output_dir=tmp_path / "disk" / "whole"), root=root) as run:
        opened(run.path / "phases" / "one", root)
    opened(root / "toy" / "here", root)
    with Run.open("toy", Config(), RunOptions(output_dir=far, resume=True), root=root):
        pass
    assert (root / ELSEWHERE).read_text() == "../../disk/l2\n../../disk/whole\n"
    assert run_folders(root) == [root / "toy" / "here", far, tmp_path / "disk" / "whole"]
    assert find_run("l2", root).path == find_run("toy/l2", root).path == far
    assert read_run(far).address == str(far) and find_run("here", root).address == "toy/here"


def test_the_commands_and_pages_know_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, far = tmp_path / "work" / "runs", opened(tmp_path / "disk" / "l2", tmp_path / "work" / "runs")
    assert main(["runs", "--root", str(root)]) == 0
    assert str(far) in capsys.readouterr().out
    assert main(["note", "--all", "--root", str(root)]) == 0
    assert "[toy/l2](../../disk/l2/note.md)" in (root / "RECORD.md").read_text() and (far / "note.md").exists()
    assert main(["report", "--root", str(root)]) == 0
    assert (far / "report" / "index.html").exists()
    assert "../../disk/l2/report/index.html" in (root / "_notebook" / "runs.js").read_text()


def test_a_list_of_a_stranger_leads_nowhere(tmp_path: Path) -> None:
    root, far = tmp_path / "work" / "runs", opened(tmp_path / "disk" / "l2", tmp_path / "work" / "runs")
    strange = tmp_path / "strange"
    make_run(strange, "fish/a")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")
    make_run(tmp_path / "disk", "fish/plain")  # it names no folder of all runs
    (strange / ELSEWHERE).write_text("../disk/l2\n../disk/fish/plain\n../broken\n../nowhere\n\0\n")
    assert run_folders(strange) == [strange / "fish" / "a"] and run_folders(root) == [far]


def test_a_long_list_forgets_what_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "MOST_BYTES", 10)
    root = tmp_path / "work" / "runs"
    opened(tmp_path / "first", root)
    opened(tmp_path / "second", root)
    (tmp_path / "first").rename(tmp_path / "moved")
    opened(tmp_path / "third", root)
    assert (root / ELSEWHERE).read_text().split() == ["../../second", "../../third"]
