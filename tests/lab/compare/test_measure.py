"""What runs are compared by, and the values of their trainings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marlab.lab.compare.groups import open_groups
from marlab.lab.compare.measure import choose_measure, curves_of, members
from marlab.lab.errors import UserError
from marlab.lab.runs.judged import write_cases
from tests.lab.compare.cases import JUDGED, make_training, two_groups
from tests.lab.report.cases import make_run


def test_the_result_they_are_judged_by(tmp_path: Path) -> None:
    groups = open_groups(two_groups(tmp_path, [1, 2], [4]), tmp_path)
    measure = choose_measure(groups)
    assert (measure.title, measure.kind, measure.better, measure.curve, measure.unit) == (
        "score", "result", "higher", "train/score", "points",
    )  # fmt: skip
    assert [(m.seed, m.value) for m in members(groups[0], measure)] == [("0", 1.0), ("1", 2.0)]


def test_another_result_or_metric_by_the_end_of_its_name(tmp_path: Path) -> None:
    groups = open_groups(two_groups(tmp_path, [1, 2], [4]), tmp_path)
    speed = choose_measure(groups, "speed", "lower")
    assert (speed.title, speed.better, speed.curve) == ("speed", "lower", None)
    metric = choose_measure(groups, "train/score")
    assert (metric.kind, metric.better) == ("metric", "higher")
    assert [m.value for m in members(groups[1], metric)] == [4.0]  # the last tenth of its records
    with pytest.raises(UserError, match=r"has no result or metric 'nothing'; results that all runs have: score, speed"):
        choose_measure(groups, "nothing")


def test_unlike_measures_never_share_a_column(tmp_path: Path) -> None:
    def with_result(name: str, result: str) -> str:
        judged = {"results": [result], "metric": "validation/loss", "better": "lower"}
        results = {result: {"value": 1.0, "unit": "share"}, "rows": 9}
        return str(make_run(tmp_path, f"toy/{name}", {"layer": name}, results=results, judged_by=judged))

    apart = open_groups([with_result("l3", "L3 mae_q"), with_result("l4", "L4 KL")], tmp_path)
    with pytest.raises(
        UserError, match=r"measures \(l3: L3 mae_q, l4: L4 KL\); results that all have, for --metric: rows"
    ):
        choose_measure(apart)
    assert choose_measure(apart, "rows").title == "rows"
    alike = open_groups([with_result("a", "final model: survival"), with_result("b", "survival")], tmp_path)
    assert choose_measure(alike).title == "final model: survival / survival"
    losses = open_groups([with_result("c", "L3 loss"), with_result("d", "L4 loss")], tmp_path)
    with pytest.raises(UserError, match="'loss' is not the same in all runs"):
        choose_measure(losses, "loss")


def test_without_a_verdict_of_the_world_the_first_shared_result_counts(tmp_path: Path) -> None:
    runs = [make_training(tmp_path, name, 1.0, judged=None, rate=rate) for name, rate in (("x", 1), ("y", 2))]
    measure = choose_measure(open_groups(runs, tmp_path))
    assert (measure.title, measure.better) == ("score", None)


def test_trainings_without_results_are_compared_by_their_curve(tmp_path: Path) -> None:
    judged = {**JUDGED, "results": ["not yet"]}
    runs = [make_training(tmp_path, n, 1.0, judged=judged, rate=r, curve=[3, r]) for n, r in (("x", 1), ("y", 2))]
    groups = open_groups(runs, tmp_path)
    measure = choose_measure(groups)
    assert measure.title == "train/score at the end" and members(groups[1], measure)[0].value == 2.0


def test_every_seed_of_a_run_that_trains_several_is_a_training(tmp_path: Path) -> None:
    runs = [make_training(tmp_path, name, 1.0, rate=rate) for name, rate in (("x", 1), ("y", 2))]
    for run in runs:
        write_cases(Path(run), "score", {10: {"games": 3.0}, 2: {"games": 5.0}})
        row = {"step": 1, "time": 1.0, "seed_2/train/score": 7.0, "seed_10/train/score": 8.0, "train/score": 7.5}
        (Path(run) / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    groups = open_groups(runs, tmp_path)
    assert [(m.seed, m.value) for m in members(groups[0], choose_measure(groups))] == [("2", 5.0), ("10", 3.0)]
    assert {seed: y.tolist() for seed, (_, y) in curves_of(groups[0].runs[0], "train/score").items()} == {
        "2": [7.0],
        "10": [8.0],
    }
