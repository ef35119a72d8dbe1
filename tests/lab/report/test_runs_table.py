"""The training record, the list of runs, the comparison, and the two commands behind them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from marlab.lab.errors import UserError
from marlab.lab.report.facts import read_all
from marlab.lab.report.runs_table import (
    RunFilter,
    compare_configs,
    comparison_renderable,
    run_rows,
    runs_renderable,
    sort_runs,
)
from tests.lab.report.cases import make_run, runs_of

# --- the record ---------------------------------------------------------------------------------------------


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
