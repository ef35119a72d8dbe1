"""What a training of layers came to: beside what needs no learning, and in sentences."""

from __future__ import annotations

from typing import Any

from marlab.lab.verdict import texts
from marlab.market.learn.judge import learnt, verdict, verdict_of_goals

RESULTS: dict[str, Any] = {
    "L2 Q RMSE, test": {"value": 1.0, "low": 0.9, "high": 1.1}, "gap only Q RMSE, test": {"value": 2.0},
    "zero and spot Q RMSE, test": {"value": 9.0}, "L2 P RMSE, test": {"value": 3.0},
    "gap only P RMSE, test": {"value": 2.0}, "zero and spot P RMSE, test": {"value": 2.5},
    "L3 mae_q, test": {"value": 1.0}, "L3 mae_q over best trivial, test": 0.5, "L3 mae_p, test": {"value": 1.0},
    "L3 mae_p over best trivial, test": 1.25, "L3 operator recall, test": 0.9,
    "best trivial operator recall, test": 0.5,
}  # fmt: skip


def test_a_layer_is_measured_beside_what_needs_no_learning() -> None:
    assert [(row.other, row.better) for row in learnt(RESULTS)] == [
        (2.0, True),
        (2.0, False),
        (2.0, True),
        (0.8, False),
        (0.5, True),
    ]
    assert learnt({}) == []


def test_the_verdict_counts_what_learning_helped() -> None:
    first, second = texts(verdict(RESULTS), "")
    assert first == (
        "Learning helped 3 of 5 measured parts on worlds that were not learnt from: L2 quantities is off by 1.000 "
        "[0.900, 1.100], 50 % of the best predictor that learns nothing (gap only)."
    )
    assert second == "L3 answers as the expert in 90 % of the cases, instead of 50 % without learning."
    assert texts(verdict({}), "")[0].startswith("No layer was measured")
    only = {name: value for name, value in RESULTS.items() if "P RMSE" in name}
    assert texts(verdict(only), "")[0].startswith("Learning helped none of 1 measured parts")
    after = {name.replace("L3", "L3 after AWR"): value for name, value in RESULTS.items() if "L2" not in name}
    assert verdict(after)[0].numbers["what"] == "L3 after AWR quantities"


def test_l2_is_judged_by_its_interval() -> None:
    def report(low: float, high: float) -> dict[str, Any]:
        parts = {"rmse": (low + high) / 2, "rmse_interval": [low, high]}
        other = {"rmse": 2.0, "rmse_interval": [1.9, 2.1]}
        return {"L2": {"Q": parts, "P": parts}, **{n: {"Q": other, "P": other} for n in ("gap only", "zero and spot")}}

    keys = [verdict_of_goals(report(*limits))[0].key for limits in ((1.0, 1.5), (1.5, 2.5), (2.5, 3.0))]
    assert keys == ["market.l2_below", "market.l2_unclear", "market.l2_above"]
    assert texts(verdict_of_goals(report(1.0, 1.5)), "")[0].startswith("L2 has learnt: its quantities are off by 1.250")
