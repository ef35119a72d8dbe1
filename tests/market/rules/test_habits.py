"""Habits: the usual ones are the rule, others are told apart, files of strangers are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from marlab.lab.errors import UserError
from marlab.market.rules.bargain import RuleOptions, learnt_options
from marlab.market.rules.habits import ALL, KIND, OPTIONS, PLACE, USUAL, Habits, Learnt, position_of, sights
from marlab.market.rules.l1 import Issue
from tests.market.rules.test_bargain import Seat, record


def row(**changed: float) -> Any:
    """One factory's habits [1, H]."""
    values = np.array([USUAL])
    for name, value in changed.items():
        values[0, PLACE[name]] = value
    return values


def test_the_usual_habits_are_the_options_of_the_rule() -> None:
    usual, options = RuleOptions(), learnt_options(row())
    for name in ("opening_days", "small_lot", "small_price", "hold", "loss"):
        assert getattr(options, name).item() == getattr(usual, name)
    assert tuple(options.opening_lots[0, 0]) == usual.opening_lots
    assert tuple(options.opening_prices[0, 0]) == usual.opening_prices
    assert bool(options.wait) and bool(options.fill_first) and np.isnan(options.price) and options.lot == 0


def test_a_habit_leans_on_what_is_seen() -> None:
    seen = np.zeros((1, 2, 11))
    seen[0, 1, 1] = 0.5  # used
    habits = Habits(row(**{"price_patient.used": 0.8})[:, None])
    assert habits.leaning("price_patient", seen).tolist() == [[0.0, 0.4]]
    assert Habits().leaning("price_patient", seen) == 0.0
    assert Habits()["large"] == 10.0 and habits["large"].tolist() == [[10.0]]


def test_what_is_sold_follows_from_habits() -> None:
    patient = record(patient_highest=3, offers=10, taken=3, taken_units=30, patience_count=5)
    for changed, price, lot in (({}, 22.0, 10.0), ({"price_high": 0.5, "large": 7.4}, 20.0, 7.0)):
        seat = Seat(round=4, known=patient, options=learnt_options(row(**changed)))  # type: ignore[arg-type]
        assert seat.sale()[:2] == (lot, price)


class Morning:
    """As much of a day as `sights` looks at."""

    def __init__(self, levels: int = 3) -> None:
        self.q_out = np.array([[10.0, 4, 6, 0, 0, 0, 0, 0, 0, 0, 5]])
        self.n_lines, self.day, self.n_steps = np.array([10.0]), np.array([10.0]), np.array([40.0])
        self.production_cost, self.can_buy = np.array([2.0]), np.array([False])
        self.n_products = np.array([levels + 1.0])


def test_what_is_seen_by_hand() -> None:
    known = record(offers=8, taken=2, taken_units=9, left=1, patient_highest=1, patient_lowest=2)
    threads = Seat(round=6, known=known).threads()
    one = np.ones(1)
    issue = Issue(one, 30 * one, 18 * one, 22 * one, 0 * one, 10 * one)
    seen = sights(Morning(), threads, issue)[0, 0]  # type: ignore[arg-type]
    expected = [
        14 / 20 - 0.5, 10 / 50 - 0.5, 5 / 50 - 0.25, 10 / 40 - 0.5, 6 / 20 - 0.3, 1 / 8 - 0.5, 16 / 22 - 0.5,
        1 / 4 - 0.25, 2.3 / 14 - 0.1, 2 / 8 - 0.3, 12 / 2.3 / 10 - 0.6,
    ]  # fmt: skip
    assert seen == pytest.approx(expected)


def test_positions() -> None:
    assert [int(position_of(Morning(levels))[0]) for levels in (2, 3, 4)] == [2, 0, 0]  # type: ignore[arg-type]
    middle = Morning()
    middle.can_buy = np.array([True])
    assert int(position_of(middle)[0]) == 1  # type: ignore[arg-type]


def test_only_what_changed_is_written() -> None:
    learnt = Learnt(middle=tuple(row(hold=12.5, accept=-0.25)[0]))
    table = learnt.to_json()
    assert table == {"kind": KIND, "first": {}, "middle": {"accept": -0.25, "hold": 12.5}, "direct": {}}
    assert Learnt.from_json(table, "here") == learnt


@pytest.mark.parametrize(
    "table",
    [
        [], {"kind": "other"}, {"kind": KIND, "first": 3}, {"kind": KIND, "first": {"nobody": 1.0}},
        {"kind": KIND, "first": {"hold": "long"}}, {"kind": KIND, "first": {"hold": 1e9}},
        {"kind": KIND, "first": {"hold": float("nan")}}, {"kind": KIND, "first": {"hold": True}},
    ],
)  # fmt: skip
def test_what_is_no_table_of_habits_is_refused(table: Any) -> None:
    with pytest.raises(UserError):
        Learnt.from_json(table, "a file")


def test_every_habit_can_be_drawn() -> None:
    for name, number in ALL.items():
        assert number.least <= number.usual <= number.most and number.spread > 0, name
    assert set(OPTIONS) < set(ALL) and len(ALL) == len(USUAL) == 129
