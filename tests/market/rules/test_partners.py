"""Partner books and the further features."""

from __future__ import annotations

import numpy as np
import pytest

from marlab.market.rules.partners import (
    EXTRA_SIZE,
    POOL_SIZE,
    Ended,
    Heard,
    PartnerBook,
    Talk,
    extra_features,
    pooled_features,
)
from marlab.market.rules.records import Records
from tests.market.days import a_day, random_days, schedule


def ended(day: int = 0, rounds: int = 1, quantity: int = 0, price: int = 10, partner: str = "A") -> Ended:
    """A sale that was negotiated in a price range of 9 to 11."""
    return Ended(day, partner, True, rounds, quantity, price, 9, 11)


def test_a_record_counts_agreements_prices_and_lots() -> None:
    book = PartnerBook()
    for one in (ended(rounds=4, quantity=7, price=11), ended(quantity=3, price=9), ended(), ended(rounds=20)):
        book.add(one)
    record = Records(*(field[0] for field in book.records(["A"], True)))
    assert (record.negotiations, record.agreements, record.units) == (4, 2, 10)
    assert (record.at_highest, record.at_lowest, record.largest_lot, record.last_lot) == (1, 1, 7, 3)
    assert (record.patient_highest, record.patient_lowest) == (1, 0)
    assert record.failures_in_a_row == 2
    np.testing.assert_allclose(book.features(["A"], True)[0], [26 / 4 / 20, 0.5, 0.5, 0.5, 0.7, 0.3, 0.1, 0.2, 0, 1])
    assert (book.features(["A"], False) == 0).all()  # nothing was bought from it


def test_cash_trends_come_from_the_last_two_reports() -> None:
    book = PartnerBook()
    book.add(ended())
    for cash in (100.0, 200.0, 150.0):
        book.add_report("A", cash)
    assert book.features(["A"], True)[0][8] == pytest.approx(-0.25)


def test_pools_average_partners_and_tell_recent_demand() -> None:
    book = PartnerBook()
    assert (book.pooled(True, 3) == 0).all()
    book.add(ended(day=0, quantity=20, partner="A"))
    book.add(ended(day=11, quantity=10, partner="B"))
    pool = book.pooled(True, 12)
    np.testing.assert_allclose(pool[:-1], (book.features(["A"], True)[0] + book.features(["B"], True)[0]) / 2)
    assert pool[-1] == pytest.approx(10 / 10 / 10)  # A's purchase is older than ten days
    assert pooled_features([(book, 12)]).shape == (1, 2 * POOL_SIZE)


def test_extra_features_tell_stock_and_room() -> None:
    state = a_day(
        day=95, inventory_input=4, q_out=schedule({0: 3, 2: 12}), exogenous_out_quantity=6, storage_cost=0.03,
        shortfall_penalty=0.6, needed_supplies=7, needed_sales=-7, exogenous_reach=np.arange(10, 0, -1),
    )  # fmt: skip
    row = extra_features(state, np.zeros(2 * POOL_SIZE))
    assert row.shape == (EXTRA_SIZE,)
    np.testing.assert_allclose(row[:5], [0.7, 0, 0.4, 0.6, 0])
    np.testing.assert_allclose(row[5:16], [0.7, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0])  # the game ends in five days
    np.testing.assert_allclose(row[16:20], [0, 0.6, 0, 0])
    np.testing.assert_allclose(row[20:30], np.arange(10, 0, -1) / 96)
    np.testing.assert_allclose(row[30:33], [0.05, 0.03, 0.6])


def test_extra_features_of_a_batch_are_those_of_its_days() -> None:
    states = random_days(20, seed=1)
    pooled = np.random.default_rng(2).random((20, 2 * POOL_SIZE))
    batched = extra_features(states, pooled)
    for i in range(20):
        np.testing.assert_array_equal(batched[i], extra_features(states.take(i), pooled[i]))


def test_reports_from_before_the_first_negotiation_count() -> None:
    book = PartnerBook()
    for cash in (100.0, 150.0):
        book.add_report("A", cash)
    book.add(ended())
    assert book.features(["A", "stranger"], True)[:, 8].tolist() == [0.5, 0]
    book.add_report("A", 75.0)
    assert book.features(["A"], True)[0, 8] == -0.5


def test_how_a_negotiation_went_is_remembered() -> None:
    book = PartnerBook()
    book.add_talk(Talk("A", True, [Heard(3, 0.5, 0), Heard(4, 1.0, 2)], 7, 5, True))
    book.add_talk(Talk("A", True, [], 1, 0, False))
    known = book.records(["B", "A"], True)
    assert known.heard_count.tolist() == [0, 2] and known.heard_quantity[1, :3].tolist() == [3, 4, 0]
    assert known.heard_position[1, 1] == 1 and known.heard_ahead[1, 1] == 2
    assert (known.offers[1], known.taken[1], known.taken_units[1], known.left[1]) == (8, 1, 5, 1)
    assert (known.late_offers[1], known.late_left[1]) == (3, 1)
