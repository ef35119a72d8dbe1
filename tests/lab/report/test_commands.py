"""The commands `marlab runs` and `marlab note`, from their words to what they print."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from marlab.cli import main
from tests.lab.report.cases import make_run, runs_of


def test_runs_command_lists_and_names_the_unreadable(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "--root", str(root), "--sort", "survival", "--reverse", "--world", "fish"]) == 0
    said = capsys.readouterr()
    lines = [line.split()[0] for line in said.out.splitlines()]
    assert lines == ["run", "fish/best", "fish/base", "fish/cut", "fish/dead"]
    assert said.err.count("is unreadable") == 4
    assert main(["runs", "--root", str(root), "--tag", "none such"]) == 0
    assert "there are 7 runs, and none of them matches" in capsys.readouterr().out


def test_runs_command_plans_and_abandons(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = ["--root", str(root)]
    words = ["--goal", "does width help?", "--reason", "cheap", "--group", "width", "--tag", "net"]
    assert main(["runs", "--plan", "fish/wide", *words, *place]) == 0
    info = runs_of(root)["fish/wide"]
    assert (info.status, info.goal, info.group, info.tags) == ("planned", "does width help?", "width", ["net"])
    assert main(["runs", "--abandon", "wide", "--reason", "too slow", *place]) == 0
    assert runs_of(root)["fish/wide"].status == "abandoned"
    assert "too slow" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["runs", "--abandon", "fish/base"], "--abandon needs --reason"),
        (["runs", "--abandon", "fish/bass", "--reason", "x"], "did you mean fish/base"),
        (["runs", "--plan", "nameless"], "does not name a run"),
        (["runs", "--plan", "fish/base"], "exists already"),
        (["runs", "--plan", "fish/x", "--abandon", "fish/y", "--reason", "x"], "cannot be asked for together"),
        (["runs", "--goal", "x"], "--goal belongs to --plan"),
        (["runs", "--reason", "x"], "--reason belongs to"),
        (["runs", "--sort", "nothing"], "No run has a result or metric 'nothing'"),
        (["compare", "fish/base", "fish/torn"], "cannot be read"),
        (["compare", "fish/base"], "needs two runs or more"),
        (["compare", "fish/base", "hunt/old"], "runs of different worlds"),
        (["compare", "fish/base", "fish/bess"], "did you mean fish/best"),
        (["compare", "fish/base", "fish/best", "--metric", "nothing"], "has no result or metric 'nothing'"),
        (["compare", "a=fish/base", "b=fish/best", "--against", "c"], "There is no group 'c'"),
        (["compare", "a=fish/base", "b=fish/cut"], "no result or metric in common"),
        (["compare", "fish/base", "fish/best", "--smooth", "0"], "smooth is 0"),
        (["note"], "takes one run"),
        (["note", "fish/base", "--all"], "takes one run"),
        (["note", "bse"], "There is no run 'bse'; did you mean"),
        (["note", "fish/odd"], "'stages' is '{}', expected a list"),
    ],
)
def test_wrong_words_get_one_sentence(
    root: Path, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(root.rglob("*"))
    assert main([*words, "--root", str(root)]) == 2
    said = capsys.readouterr()
    assert sentence in said.err and said.err.count("\n") == 1 and "Traceback" not in said.err
    assert sorted(root.rglob("*")) == before


def test_ambiguous_name_is_refused(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(root, "hunt/base")
    assert main(["note", "base", "--root", str(root)]) == 2
    assert "'base' names 2 runs: fish/base, hunt/base" in capsys.readouterr().err


def test_note_command_prints_the_note_without_marks(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("fish/best", "best", str(root / "fish" / "best")):
        assert main(["note", name, "--root", str(root)]) == 0
        said = capsys.readouterr()
        assert said.out.startswith("# fish/best") and "marlab:" not in said.out
        assert str(root / "fish" / "best" / "note.md") in said.err


def test_note_all_makes_notes_and_record(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["note", "--all", "--root", str(root)]) == 0
    assert (root / "RECORD.md").exists() and (root / "hunt" / "old" / "note.md").exists()
    assert "RECORD.md" in capsys.readouterr().err


def test_a_note_is_markdown_in_a_pipe_and_rendered_on_a_terminal(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["note", "fish/base", "--root", str(root)]
    assert main(words) == 0
    raw = capsys.readouterr().out
    assert raw.startswith("# fish/base") and "| Status | finished |" in raw
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "fish/base" in shown and "finished" in shown and "| Status" not in shown and "# fish" not in shown
