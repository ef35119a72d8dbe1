"""The ledger of a day: what is reserved may all be signed."""

import numpy as np
import pytest

from marlab.market.logs.daystate import DayState
from marlab.market.rules import l1
from marlab.market.rules.l1 import L1Options
from marlab.market.rules.safety import L1SafetyLayer, Ledger
from tests.market.days import a_day, random_days, schedule

GUIDE = L1Options()
ECONOMIC = L1Options(rules="economic")


def buying_day(**given: object) -> DayState:
    """The state of the worked vector for buying."""
    arrivals, payments = schedule({0: 8, 1: 20, 3: 5}), schedule({0: 80, 1: 210, 3: 55})
    return a_day(inventory_input=5, q_in=arrivals, pay=payments, **given)


def test_a_reserved_sale_lowers_the_earlier_days_too() -> None:
    state = a_day(horizon=3, n_lines=0, inventory_output=5)
    ledger = Ledger(state, GUIDE)
    assert ledger.caps.sell.tolist() == [5, 5, 5, 5]
    ledger.reserve(True, 5, 20, 2)
    assert ledger.caps.sell.tolist() == [0, 0, 0, 0]
    ledger.reset()
    assert ledger.caps.sell.tolist() == [5, 5, 5, 5]


@pytest.mark.parametrize("options", [GUIDE, L1Options(production="platform"), ECONOMIC], ids=str)
def test_everything_reserved_may_be_signed(options: L1Options) -> None:
    rng = np.random.default_rng(8)
    for state in (random_days(40, seed=9).take(i) for i in range(40)):
        ledger = Ledger(state, options)
        planned = []
        for _ in range(8):
            selling, day = bool(rng.random() < 0.5), int(rng.integers(0, 11))
            room = int(min(ledger.caps.of(selling)[day], 30))
            price = 5
            if not selling:
                room = min(room, int(ledger.caps.budget // price))
            if room:
                quantity = int(rng.integers(1, room + 1))
                ledger.reserve(selling, quantity, price, day)
                planned.append((selling, quantity, price, day))
        ledger.reset()
        for selling, quantity, price, day in planned:  # signed one after the other, each still fits
            assert quantity <= ledger.caps.of(selling)[day]
            assert selling or quantity * price <= ledger.caps.budget
            ledger.reserve(selling, quantity, price, day, permanent=True)


def test_signed_deals_stay_and_equal_the_completed_state() -> None:
    state = buying_day()
    ledger = Ledger(state, L1Options(production="material"))
    ledger.reserve(False, 6, 9, 2, permanent=True)
    ledger.reserve(True, 3, 21, 4, permanent=True)
    ledger.reserve(False, 100, 9, 0)
    ledger.reset()
    signed = state.with_signed(schedule({2: 6}), schedule({2: 54}), schedule({4: 3}), schedule({4: 63}))
    for kept, fresh in zip(ledger.caps, l1.caps(signed, ledger.options)):
        np.testing.assert_array_equal(kept, fresh)


def test_a_planned_purchase_is_nothing_to_sell_from() -> None:
    ledger = Ledger(a_day(), L1Options(production="material"))
    ledger.reserve(False, 10, 10, 0)
    assert ledger.caps.sell[0] == 0
    ledger.reserve(False, 10, 10, 0, permanent=True)
    assert ledger.caps.sell[0] == 10


# --- the guide's class and options ----------------------------------------------------------------------------------


def test_the_layer_gives_what_the_functions_give() -> None:
    state = buying_day(inventory_output=3)
    layer = L1SafetyLayer(horizon=40)
    output = layer.compute(state, is_buying=True)
    assert output.Q_safe[0] == 862 and output.B_free == 7655
    assert output.baseline == (30, 9.5, 0)
    assert np.flatnonzero(output.time_mask == 0).tolist() == list(range(11))
    assert layer.clip_action(output.baseline, output, is_buying=True) == (30, 9, 0, True)
    assert layer._compute_baseline(state, output.caps, is_buying=False) == (1.5, 21, 0)
    with pytest.raises(ValueError, match="days ahead"):
        L1SafetyLayer(horizon=20).compute(state)
