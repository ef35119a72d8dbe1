"""The list of runs: filters, columns, widths, and what it reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import marlab.lab.runs.files as files
from marlab.lab.report.facts import read_all
from marlab.lab.report.runs_table import RunFilter, cell_width, fit, run_lines, run_rows
from marlab.lab.report.sorting import sort_runs, values_by
from tests.lab.report.cases import make_run, runs_of


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


def test_list_leaves_out_empty_columns_and_shows_the_value_sorted_by(root: Path) -> None:
    runs = [runs_of(root)[name] for name in ("fish/best", "fish/base")]
    lines = run_lines(run_rows(runs, values_by(runs, "speed")), "speed")
    assert lines[0].split()[:3] == ["run", "status", "speed"]
    assert lines[1].split()[:3] == ["fish/best", "finished", "5"] and "survival 0.98; speed 5" in lines[1]
    assert "group" not in run_lines(run_rows([runs_of(root)["hunt/later"]]))[0]


def test_a_run_says_what_its_number_is_where_others_call_it_differently(root: Path) -> None:
    make_run(root, "fish/train", results={"final model: survival": 0.7})
    runs = [runs_of(root)[name] for name in ("fish/best", "fish/train")]
    lines = run_lines(run_rows(runs, values_by(runs, "survival")), "survival")
    assert "0.98 (survival)" in lines[1] and "0.7 (final model: survival)" in lines[2]


def test_the_result_that_a_run_is_judged_by_comes_first(root: Path) -> None:
    judged = {"results": ["speed"], "metric": None, "better": "higher"}
    make_run(root, "fish/quick", results={"survival": 0.5, "worst": 0.1, "speed": 9}, judged_by=judged)
    assert run_rows([runs_of(root)["fish/quick"]])[0].results == "speed 9; survival 0.5"


@pytest.mark.parametrize("width", [30, 60, 80, 120, 200])
def test_list_fits_the_terminal_with_one_line_per_run(root: Path, width: int) -> None:
    make_run(
        root, "fish/wordy", goal="to see whether\nit fits 長い " * 5, results={"survival": 0.5, "x" * 90: "y" * 90}
    )
    runs = list(runs_of(root).values())
    rows = run_rows(runs, values_by(runs, "survival"))
    lines = run_lines(rows, "survival", width)
    assert all(cell_width(line) <= width for line in lines)
    listed, told = lines[: len(rows) + 1], " ".join(line.strip() for line in lines[len(rows) + 1 :])
    assert all(line.startswith(row.run) for row, line in zip(rows, listed[1:]))
    hidden = told.removeprefix("no room for: ").split(", ") if told else []
    assert listed[0].split()[:2] == ["run", "status"] and len(listed[0].split()) + len(hidden) == 9


def test_colours_are_for_terminals_and_steer_nothing(root: Path) -> None:
    info = runs_of(make_run(root, "fish/markup", goal="[red]not red[/red] \x1b[31mred").parent.parent)["fish/markup"]
    plain = run_lines(run_rows([info]))
    assert "[red]not red[/red] \\x1b[31mred" in plain[1] and "\x1b" not in "".join(plain)
    assert "\x1b[32mfinished\x1b[0m" in run_lines(run_rows([info]), colours=True)[1]


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("abc", 5, "abc  "),
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("長長", 3, "長…"),
        ("a\nb", 3, "a b"),
        ("長い", 2, "… "),
    ],
)
def test_texts_are_cut_and_filled_to_their_width(text: str, width: int, shown: str) -> None:
    assert fit(text, width) == shown and cell_width(shown) == width


def test_a_long_list_opens_one_small_file_per_run(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes the list quick: configs and metrics stay closed, and locks of runs that have ended too."""
    opened: list[str] = []
    read = files.open_regular

    def watch(path: Path) -> Any:
        opened.append(path.name)
        return read(path)

    monkeypatch.setattr(files, "open_regular", watch)
    runs = [info for info in read_all(root)[0] if info.status != "interrupted"]
    opened.clear()
    assert len(run_lines(run_rows(sort_runs(runs)))) == len(runs) + 1
    assert len(run_lines(run_rows(runs, values_by(runs, "survival")))) == len(runs) + 1
    assert opened == []
    read_all(root)
    assert set(opened) <= {"run.json", "lock", "elsewhere.txt"} and opened.count("run.json") == 10
