"""Runs in order: columns, results and metrics by the names that people call them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marlab.lab.errors import UserError
from marlab.lab.report.sorting import COLUMNS, find_name, result_named, sort_runs, values_by
from tests.lab.report.cases import make_run, runs_of


def test_sorting_by_facts_results_and_metrics(root: Path) -> None:
    runs = list(runs_of(root).values())

    def order(by: str, reverse: bool = False) -> list[str]:
        return [info.name for info in sort_runs(runs, by, reverse)]

    assert order("survival")[:2] == ["base", "best"] and order("survival", reverse=True)[:2] == ["best", "base"]
    assert order("ended")[:4] == ["best", "cut", "failed", "base"]  # 13:00 in another time zone comes after 11:02
    assert order("name") == ["base", "best", "cut", "dead", "failed", "later", "old"]
    assert order("status")[0] == "old" and order("duration")[-2:] == ["later", "old"]
    assert set(order("loss/policy")) == set(order("name"))  # a metric from metrics.jsonl
    assert order("group")[:2] == ["base", "best"] and order("seed") == order("name")
    assert order("policy")[0] == order("loss/policy")[0]  # the end of its name is enough
    assert sort_runs([], "anything") == []


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("survival", ["final model: survival", "training survival"]),
        ("Survival", ["final model: survival", "training survival"]),
        ("training survival", ["training survival"]),
        ("rate", ["custom/survival_rate"]),
        ("val", []),
        ("vival", []),
    ],
)
def test_short_names(asked: str, meant: list[str]) -> None:
    assert find_name(asked, ["final model: survival", "training survival", "custom/survival_rate"]) == meant


def test_of_several_the_one_that_the_run_is_judged_by_is_meant(root: Path) -> None:
    results = {"training survival": 0.5, "final model: survival": 0.9, "best survival": "unknown"}
    make_run(root, "fish/two", results=results)
    assert result_named(runs_of(root)["fish/two"], "survival") == ("training survival", 0.5)
    judged = {"results": ["missing", "final model: survival"], "metric": None, "better": "higher"}
    make_run(root, "fish/two", results=results, judged_by=judged)
    assert result_named(runs_of(root)["fish/two"], "survival") == ("final model: survival", 0.9)


def test_what_nobody_has_is_refused_with_what_there_is(root: Path) -> None:
    runs = list(runs_of(root).values())
    with pytest.raises(UserError) as refused:
        sort_runs(runs, "surviva")
    said = str(refused.value)
    assert "'surviva' to sort by" in said and "close to it: survival" in said
    assert all(name in said for name in (*COLUMNS, "the results speed, survival", "loss/policy", "survival/mean"))
    rows = [{"step": 1, "time": 1.0, "a/loss": 1.0, "b/loss": 2.0}]
    make_run(root, "fish/losses", results={})
    (root / "fish/losses/metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(UserError, match="'loss' may be any of the metrics a/loss, b/loss; say which"):
        values_by([runs_of(root)["fish/losses"]], "loss")
