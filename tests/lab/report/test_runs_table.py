"""The training record, the list of runs, the comparison, and the two commands behind them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from marlab.cli import main
from marlab.lab.errors import UserError
from marlab.lab.report.facts import duration, file_size, read_all, when
from marlab.lab.report.record import write_all, write_record
from marlab.lab.report.runs_table import (
    RunFilter,
    compare_configs,
    comparison_renderable,
    run_rows,
    runs_renderable,
    sort_runs,
)
from marlab.lab.runs.records import RunInfo
from tests.lab.report.cases import make_run

NOT_STARTED: dict[str, object] = {"attempts": [], "command": None, "started": None, "ended": None, "results": {}}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Runs in every state, and three directories that are none."""
    root = tmp_path / "runs"
    make_run(root, "fish/best", goal="survive", group="sweep", results={"survival": 0.98, "speed": 5})
    make_run(root, "fish/base", goal="survive", group="sweep", results={"survival": {"value": 0.9, "unit": "share"}},
             ended="2026-03-01T09:00:00-04:00")  # fmt: skip
    make_run(root, "fish/cut", {"lr": 1}, status="interrupted", reason="time limit", results={}, tags=["long"])
    make_run(root, "fish/dead", status="running", goal="survive", results={}, ended=None)
    make_run(root, "hunt/failed", status="failed", reason="ValueError: nan", results={})
    make_run(root, "hunt/later", status="planned", reason="needs the cluster", **NOT_STARTED)
    make_run(root, "hunt/old", status="abandoned", reason="starts | were exhausted", **NOT_STARTED)
    for name, text in (
        ("torn", '{"schema": 1'),
        ("foreign", "[]"),
        ("odd", '{"schema": 1, "created": "x", "stages": {}}'),
    ):
        (root / "fish" / name).mkdir()
        (root / "fish" / name / "run.json").write_text(text)
    (root / "fish" / "headless").mkdir()
    (root / "fish" / "headless" / "metrics.jsonl").touch()
    (root / "fish" / "empty").mkdir()
    (root / "stray.txt").touch()
    return root


def runs_of(root: Path) -> dict[str, RunInfo]:
    return {info.id: info for info in read_all(root)[0]}


# --- the record ---------------------------------------------------------------------------------------------


def test_record_has_every_run_in_its_place(root: Path) -> None:
    path, problems = write_all(root)
    text = path.read_text()
    assert path == root / "RECORD.md" and problems == []
    places = [
        "# Training record", "| fish | 2 | 2 | 0 | 0 |", "| hunt | 0 | 1 | 1 | 1 |", "4 directories cannot be read.",
        "## Done", "### survive (sweep)", "[fish/base](fish/base/note.md): finished, 2026-03-01 13:00 UTC, 1 h 2 min",
        "survival 0.9 share", "`marlab fish train --name base`", "[fish/best](fish/best/note.md)",
        "survival 0.98; speed 5",
        "## Unfinished", "### survive", "[fish/dead](fish/dead/note.md): interrupted (the process died)",
        "### No goal given", "[fish/cut](fish/cut/note.md): interrupted (time limit)",
        "[hunt/failed](hunt/failed/note.md): failed (ValueError: nan)",
        "## Planned", "[hunt/later](hunt/later/note.md): planned (needs the cluster)",
        "## Abandoned", "[hunt/old](hunt/old/note.md): abandoned (starts | were exhausted)",
        "## Unreadable", "| `fish/foreign` |", "| `fish/headless` | there is no run.json |", "| `fish/odd` |",
        "| `fish/torn` |",
    ]  # fmt: skip
    position = 0
    for place in places:
        assert place in text, place
        assert text.index(place, position) >= position, place
        position = text.index(place, position)
    assert "fish/empty" not in text
    assert all((info.path / "note.md").exists() for info in read_all(root)[0])
    assert write_all(root)[0].read_text() == text  # the same runs, the same record


def test_record_keeps_what_a_person_adds_and_links_only_to_notes_that_exist(root: Path) -> None:
    path = write_record(root)
    assert "note.md" not in path.read_text() and "- fish/best: finished" in path.read_text()
    path.write_text("My preface\n\n" + path.read_text() + "\nMy epilogue\n")
    text = write_record(root).read_text()
    assert text.startswith("My preface\n\n") and text.endswith("\nMy epilogue\n")


def test_record_of_nothing(tmp_path: Path) -> None:
    assert "There are no runs yet." in write_record(tmp_path).read_text()
    with pytest.raises(UserError, match="not a folder of runs"):
        write_record(tmp_path / "nowhere")


def test_one_note_that_cannot_be_written_does_not_stop_the_others(root: Path) -> None:
    (root / "fish" / "base" / "note.md").mkdir()
    _, problems = write_all(root)
    assert len(problems) == 1 and "fish/base" in problems[0]
    assert (root / "fish" / "best" / "note.md").exists()


# --- the list -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (RunFilter(), "fish/base fish/best fish/cut fish/dead hunt/failed hunt/later hunt/old"),
        (RunFilter(world="hunt"), "hunt/failed hunt/later hunt/old"),
        (RunFilter(status="interrupted"), "fish/cut fish/dead"),
        (RunFilter(tag="long"), "fish/cut"),
        (RunFilter(group="sweep", world="fish"), "fish/base fish/best"),
        (RunFilter(find="SURVIVE"), "fish/base fish/best fish/dead"),
        (RunFilter(find="exhausted"), "hunt/old"),
        (RunFilter(find="--name cut"), "fish/cut"),
        (RunFilter(world="moon"), ""),
    ],
)
def test_filters(root: Path, wanted: RunFilter, names: str) -> None:
    assert [info.id for info in read_all(root)[0] if wanted.accepts(info)] == names.split()


def test_sorting_by_facts_results_and_metrics(root: Path) -> None:
    runs = list(runs_of(root).values())

    def order(by: str, reverse: bool = False) -> list[str]:
        return [info.name for info in sort_runs(runs, by, reverse)]

    assert order("survival")[:2] == ["base", "best"] and order("survival", reverse=True)[:2] == ["best", "base"]
    assert order("ended")[:4] == ["best", "cut", "failed", "base"]  # 13:00 in another time zone comes after 11:02
    assert order("name") == ["base", "best", "cut", "dead", "failed", "later", "old"]
    assert order("status")[0] == "old" and order("duration")[-2:] == ["later", "old"]
    assert set(order("loss/policy")) == set(order("name"))  # a metric from metrics.jsonl
    with pytest.raises(UserError, match=r"'surviva' to sort by.*close: survival"):
        sort_runs(runs, "surviva")
    assert sort_runs([], "anything") == []


def rendered(thing: object, width: int = 200) -> str:
    written = io.StringIO()
    Console(width=width, file=written).print(thing)
    return written.getvalue()


def test_list_leaves_out_empty_columns_and_shows_the_value_sorted_by(root: Path) -> None:
    runs = runs_of(root)
    text = rendered(runs_renderable(run_rows([runs["fish/best"], runs["fish/base"]], "speed"), "speed"))
    lines = text.splitlines()
    assert lines[0].split()[:3] == ["run", "status", "speed"]
    assert lines[1].split()[:3] == ["fish/best", "finished", "5"] and "survival 0.98; speed 5" in lines[1]
    assert "group" not in rendered(runs_renderable(run_rows([runs["hunt/later"]])))


@pytest.mark.parametrize("width", [30, 60, 80, 120, 200])
def test_list_fits_the_terminal_with_one_line_per_run(root: Path, width: int) -> None:
    make_run(root, "fish/wordy", goal="to see whether it fits " * 5, results={"survival": 0.5, "x" * 90: "y" * 90})
    rows = run_rows(list(runs_of(root).values()), "survival")
    lines = rendered(runs_renderable(rows, "survival", width), width).splitlines()
    assert all(len(line) <= width for line in lines)
    listed, told = lines[: len(rows) + 1], " ".join(line.strip() for line in lines[len(rows) + 1 :])
    assert all(line.startswith(row.run) for row, line in zip(rows, listed[1:]))
    hidden = told.removeprefix("no room for: ").split(", ") if told else []
    assert listed[0].split()[:2] == ["run", "status"] and len(listed[0].split()) + len(hidden) == 9


def test_markup_in_names_is_shown_as_text(root: Path) -> None:
    info = runs_of(make_run(root, "fish/markup", goal="[red]not red[/red] [/]").parent.parent)["fish/markup"]
    assert "[red]not red[/red] [/]" in rendered(runs_renderable(run_rows([info])))


def test_comparison(root: Path) -> None:
    runs = runs_of(root)
    found = compare_configs(runs["fish/best"], runs["fish/cut"])
    assert found.config == [("lr", "0.0003", "1"), ("fish", "25", "not set"), ("net.width", "64", "not set")]
    assert found.results == [("survival", "0.98", "not recorded", ""), ("speed", "5", "not recorded", "")]
    same = compare_configs(runs["fish/base"], runs["fish/best"])
    assert same.config == [] and same.hidden == 3
    assert same.results[0] == ("survival", "0.9 share", "0.98", "+0.08")
    assert "The parameters are the same." in rendered(comparison_renderable(same))
    everything = compare_configs(runs["fish/base"], runs["fish/best"], everything=True)
    assert [row[0] for row in everything.config] == ["lr", "fish", "net.width"] and everything.hidden == 0


# --- the commands -------------------------------------------------------------------------------------------


def test_runs_command_lists_and_names_the_unreadable(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "--root", str(root), "--sort", "survival", "--reverse", "--world", "fish"]) == 0
    said = capsys.readouterr()
    lines = [line.split()[0] for line in said.out.splitlines()]
    assert lines == ["run", "fish/best", "fish/base", "fish/cut", "fish/dead"]
    assert said.err.count("is unreadable") == 4
    assert main(["runs", "--root", str(root), "--tag", "none such"]) == 0
    assert "None of the 7 runs" in capsys.readouterr().out


def test_runs_command_plans_and_abandons(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = ["--root", str(root)]
    words = ["--goal", "does width help?", "--reason", "cheap", "--group", "width", "--tag", "net"]
    assert main(["runs", "--plan", "fish/wide", *words, *place]) == 0
    info = runs_of(root)["fish/wide"]
    assert (info.status, info.goal, info.group, info.tags) == ("planned", "does width help?", "width", ["net"])
    assert main(["runs", "--abandon", "wide", "--reason", "too slow", *place]) == 0
    assert runs_of(root)["fish/wide"].status == "abandoned"
    assert "too slow" in capsys.readouterr().out


def test_runs_command_compares(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "--root", str(root), "--compare", "fish/base", "cut"]) == 0
    said = capsys.readouterr().out
    assert "net.width" in said and "not set" in said and "0.9 share" in said


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
        (["runs", "--all"], "--all belongs to --compare"),
        (["runs", "--sort", "nothing"], "No run has a result or metric 'nothing'"),
        (["runs", "--compare", "fish/base", "fish/torn"], "cannot be read"),
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


# --- small words --------------------------------------------------------------------------------------------


def test_times_durations_and_sizes() -> None:
    assert when("2026-03-01T12:30:00+02:00") == "2026-03-01 10:30 UTC"
    assert when("2026-03-01T12:30:00") == "2026-03-01 12:30 (no time zone)"
    assert when("yesterday") == "yesterday" and when(None) == "unknown"
    assert [duration(s) for s in (0.53, 59.9, 61, 3723, 90000, None, float("nan"))] == [
        "0.53 s", "59.9 s", "1 min 1 s", "1 h 2 min", "25 h 0 min", "unknown", "unknown",
    ]  # fmt: skip
    assert [file_size(s) for s in (0, 999, 1234, 5_000_000, 7e9)] == ["0 B", "999 B", "1.23 kB", "5 MB", "7 GB"]
