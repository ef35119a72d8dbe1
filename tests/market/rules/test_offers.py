"""Offers that are known weigh less the older they are."""

import numpy as np
import pytest

from marlab.market.logs.daystate import stack
from marlab.market.rules.goals import BUY, SELL
from marlab.market.rules.offers import OfferBook, as_trades, offer_slots, offer_weight
from tests.market.days import a_day


def test_the_worked_vector_of_offer_weights() -> None:
    weights = offer_weight(np.array([0.0, 3, 0]), np.array([5.0, 5, 20]))
    np.testing.assert_allclose(weights, [0.5774, 0.2347, 0.8165], atol=5e-5)


def test_old_offers_fade_from_the_latest_one() -> None:
    book = OfferBook()
    book.add(SELL, 12, 10, 20, round=4)
    book.add(BUY, 10, 10, 9, round=0)  # due yesterday: it fills no slot
    book.new_day()
    book.add(SELL, 14, 10, 20, round=2)
    state = stack([a_day(day=11, price_out=20)])
    slots = offer_slots(state, book.known(11))
    assert slots.weight[0, SELL, 3] == pytest.approx(np.sqrt(0.5))
    assert slots.weight[0, SELL, 1] == pytest.approx(np.sqrt(0.5) * np.exp(-0.3 * 18))
    assert slots.weight[0, BUY].sum() == 0
    book.new_day()
    assert len(book.known(12).row) == 1
    np.testing.assert_allclose(as_trades(book.known(12), 1).weight, np.sqrt(0.5))
