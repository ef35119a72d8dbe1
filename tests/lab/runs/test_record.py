"""run.json of strangers and of half a crash: one sentence, and one bad record does not hide the others."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from marlab.cli import main
from marlab.lab.errors import UserError
from marlab.lab.report.facts import read_all
from marlab.lab.runs import run as run_module
from marlab.lab.runs.record import new_record, read_record
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import UNWRITTEN, Run, RunOptions


@dataclass(frozen=True)
class Config:
    """Settings of nothing."""

    seed: int = 0
    rate: float = 1.0
    label: str = ""


def stored(folder: Path, **changes: Any) -> Path:
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({**new_record("toy", folder.name), **changes}))
    return folder


WRONG = {
    "status": ["flying", 3, None],
    "tags": [5, ["a", 1], {"a": 1}],
    "attempts": [{}, [1], [{"seconds": "long"}]],
    "stages": [{}, [{"name": 1}], "x"],
    "results": [[], 3],
    "goal": [[], 1],
    "world": [None, 1],
    "versions": ["x"],
}


@pytest.mark.parametrize(("name", "value"), [(k, v) for k, values in WRONG.items() for v in values])
def test_wrong_types_are_one_sentence(tmp_path: Path, name: str, value: Any) -> None:
    with pytest.raises(UserError, match=f"'{name}' is"):
        read_record(stored(tmp_path / "a", **{name: value}))


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"schema": ' + "9" * 5000 + "}", "\ud800".encode("utf-8", "surrogatepass")]
)
def test_texts_that_no_reader_survives(tmp_path: Path, text: str | bytes) -> None:
    """They end neither the reader nor the list of all other runs."""
    stored(tmp_path / "toy" / "good")
    bad = stored(tmp_path / "toy" / "bad") / "run.json"
    bad.write_bytes(text if isinstance(text, bytes) else text.encode())
    runs, problems = read_all(tmp_path)
    assert [r.name for r in runs] == ["good"] and len(problems) == 1 and problems[0].path.name == "bad"


def test_a_folder_instead_of_the_record(tmp_path: Path) -> None:
    (tmp_path / "a" / "run.json").mkdir(parents=True)
    with pytest.raises(UserError, match="cannot be read"):
        read_record(tmp_path / "a")


# --- a disk that is full ------------------------------------------------------------------------------------------


def test_a_full_disk_at_the_end_is_told_by_every_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")

    def no_room(*args: Any) -> None:
        raise full

    with pytest.raises(OSError, match="No space"), Run.open("toy", Config(), RunOptions(output_dir=tmp_path / "r")):
        monkeypatch.setattr(run_module, "write_json", no_room)
        monkeypatch.setattr(Run, "log", no_room)
        raise RuntimeError("something else")
    monkeypatch.undo()
    info = read_run(tmp_path / "r")
    assert info.status == "failed" and "disk full" in str(info.reason) and (tmp_path / "r" / UNWRITTEN).exists()
    with Run.open("toy", Config(), RunOptions(output_dir=tmp_path / "r", resume=True)):
        pass
    assert read_run(tmp_path / "r").status == "finished" and not (tmp_path / "r" / UNWRITTEN).exists()


def test_the_status_does_not_depend_on_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*args: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(RuntimeError), Run.open("toy", Config(), RunOptions(output_dir=tmp_path / "r")):
        monkeypatch.setattr(Run, "log", no_room)
        raise RuntimeError("the work broke")
    info = read_run(tmp_path / "r")
    assert info.status == "failed" and info.reason == "RuntimeError: the work broke"


def test_an_os_error_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    stored(tmp_path / "runs" / "toy" / "a")
    (tmp_path / "runs" / "toy" / "a" / "note.md").mkdir()  # a folder where the note should be
    assert main(["note", "toy/a"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("marlab: ") and said.count("\n") == 1 and "note.md" in said


# --- values that no run may have -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (Config(seed=-1), "seed is -1, expected a whole number from 0"),
        (Config(seed=2**63), "seed is 9223372036854775808"),
        (Config(rate=float("inf")), "rate is inf, expected a finite number"),
        (Config(rate=float("nan")), "rate is nan, expected a finite number"),
        (Config(label="\udc80"), "label holds bytes that are no text"),
    ],
)
def test_impossible_values_leave_nothing_on_disk(tmp_path: Path, config: Config, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        Run.open("toy", config, RunOptions(output_dir=tmp_path / "r"))
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("name", ["x" * 101, "", "a b", ".", "../x"])
def test_names(name: str) -> None:
    with pytest.raises(UserError, match="--name is"):
        RunOptions(name=name)


def test_a_file_where_the_run_should_be(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("")
    for place in (tmp_path / "r", Path(os.devnull)):
        with pytest.raises(UserError, match="is a file, not a folder"):
            Run.open("toy", Config(), RunOptions(output_dir=place))


@pytest.mark.parametrize("content", ["folder", '{"pid": "x", "host": 1, "born": 2}', "[" * 100_000, '{"pid": 1}'])
def test_odd_locks(tmp_path: Path, content: str) -> None:
    folder = stored(tmp_path / "r", status="interrupted")
    (folder / "config.json").write_text(json.dumps({"seed": 0, "rate": 1.0, "label": ""}))
    if content == "folder":
        (folder / "lock").mkdir()
        with pytest.raises(UserError, match="is a folder where a lock should be"):
            Run.open("toy", Config(), RunOptions(output_dir=folder, resume=True))
    else:
        (folder / "lock").write_text(content)
        with Run.open("toy", Config(), RunOptions(output_dir=folder, resume=True)) as run:
            assert run.resumed
