"""Records of partners as arrays: what is counted, and that a batch is many partners at once."""

from __future__ import annotations

import numpy as np
import pytest

from marlab.market.rules import records
from marlab.market.rules.l1 import Action
from marlab.market.rules.records import Records

YES = np.ones(1, bool)


def ended(known: Records, day: int = 0, rounds: int = 1, quantity: int = 0, price: int = 10) -> Records:
    """A negotiation with one partner in a price range of 9 to 11."""
    numbers = (np.full(1, float(value)) for value in (rounds, quantity, price, 9, 11))
    return records.after_negotiations(known, YES, day, *numbers)


def talked(known: Records, heard: list[tuple[float, float, float]], offers: int, taken: int, left: bool) -> Records:
    told = Action(*np.array(heard, np.float64).reshape(-1, 3).T[:, None])
    return records.after_talks(known, YES, told, np.full(1, float(offers)), np.full(1, float(taken)), YES & left)


def test_patience_is_learned_from_long_failures_and_late_agreements() -> None:
    known = records.empty((1,))
    assert not records.is_patient(known)[0]
    known = ended(known, rounds=2, quantity=5)  # an early agreement tells nothing
    assert known.patience_count[0] == 0
    known = ended(known, rounds=3, quantity=5)
    assert records.is_patient(known)[0]
    known = ended(known, rounds=1)
    assert not records.is_patient(known)[0]
    for _ in range(4):
        known = ended(known, rounds=20)
    assert records.is_patient(known)[0] and known.patience.tolist() == [[20, 1, 20, 20, 20]]


def test_a_partner_stays_unless_it_is_known_to_leave_late() -> None:
    known = records.empty((1,))
    assert records.stays(known)[0] and records.leaving(known)[0] == 0.5
    known = talked(known, [], 3, 0, True)  # left early: tells nothing about later rounds
    assert records.stays(known)[0] and records.leaving(known)[0] == 0.4
    known = talked(known, [], 12, 0, True)
    assert not records.stays(known)[0]


def test_the_latest_offers_are_remembered() -> None:
    known = records.empty((1,))
    for day in range(20):
        known = talked(known, [(1.0 + day, 0.5, day % 3)] * 9, 4, 2 * (day == 3), False)
    assert known.heard_count[0] == 180 and known.taken[0] == 1 and known.taken_units[0] == 2
    assert sorted(known.heard_quantity[0])[0] == 3 and (known.heard_quantity[0] == 20).sum() == 9
    assert not records.only_today(known)[0]
    assert records.only_today(talked(records.empty((1,)), [(2, 0, 0)], 1, 0, False))[0]


def test_units_of_the_last_ten_days() -> None:
    known = ended(ended(records.empty((1,)), day=0, quantity=20), day=11, quantity=10)
    assert records.units_lately(known, 12)[0] == 10 and records.units_lately(known, 21)[0] == 10
    assert records.units_lately(known, 22)[0] == 0


def test_partners_of_a_batch_are_remembered_one_by_one() -> None:
    rng = np.random.default_rng(0)
    many, ones = records.empty((3, 4)), {place: records.empty((1,)) for place in np.ndindex(3, 4)}
    for day in range(12):
        there = rng.random((3, 4)) < 0.7
        rounds, quantity = rng.integers(0, 20, (3, 4)) * 1.0, rng.integers(0, 3, (3, 4)) * 4.0
        price, left = rng.integers(9, 12, (3, 4)) * 1.0, rng.random((3, 4)) < 0.5
        heard = np.where(rng.random((1, 3, 4, 6)) < 0.6, rng.random((3, 3, 4, 6)), np.nan)
        cash = rng.normal(100, 50, (3, 4))
        many = records.after_negotiations(many, there, day, rounds, quantity, price, 0 * price + 9, 0 * price + 11)
        many = records.after_talks(many, there, Action(*heard), rounds, quantity, left)
        many = records.after_reports(many, there, cash)
        for at, one in ones.items():
            if there[at]:
                one = ended(one, day, int(rounds[at]), int(quantity[at]), int(price[at]))
                rows = heard[(slice(None), *at)].T
                one = talked(one, rows[~np.isnan(rows[:, 0])].tolist(), int(rounds[at]), int(quantity[at]), left[at])
                ones[at] = records.after_reports(one, YES, cash[at][None])
    for at, one in ones.items():
        for name, field, alone in zip(Records._fields, many, one):
            np.testing.assert_array_equal(field[at], alone[0], err_msg=name)
        np.testing.assert_array_equal(records.features(many)[at], records.features(one)[0])
    assert records.pooled(many, 12).shape == (3, 11)
    assert (records.pooled(records.empty((2, 5)), 3) == 0).all()


def test_cash_trends_come_from_the_last_two_reports() -> None:
    known = records.empty((1,))
    for cash in (100.0, 200.0, 150.0):
        known = records.after_reports(known, YES, np.array([cash]))
    assert records.features(known)[0, 8] == pytest.approx(-0.25)
