"""The ledger of a day: what is planned may all be signed."""

import numpy as np
import pytest

from marlab.market.agent.safety import L1SafetyLayer, Ledger
from marlab.market.logs.daystate import DayState
from marlab.market.rules import l1
from marlab.market.rules.l1 import L1Options
from tests.market.days import a_day, random_days, schedule

GUIDE = L1Options()
ECONOMIC = L1Options(rules="economic")


def buying_day(**given: object) -> DayState:
    """The state of the worked vector for buying."""
    arrivals, payments = schedule({0: 8, 1: 20, 3: 5}), schedule({0: 80, 1: 210, 3: 55})
    return a_day(inventory_input=5, q_in=arrivals, pay=payments, **given)


def test_a_signed_sale_lowers_the_earlier_days_too() -> None:
    ledger = Ledger(a_day(horizon=3, n_lines=0, inventory_output=5), GUIDE)
    assert ledger.caps.sell.tolist() == [5, 5, 5, 5]
    ledger.sign(True, 5, 20, 2)
    assert ledger.caps.sell.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("options", [GUIDE, ECONOMIC], ids=str)
def test_everything_planned_may_be_signed(options: L1Options) -> None:
    rng = np.random.default_rng(8)
    for state in (random_days(40, seed=9).take(i) for i in range(40)):
        planned = []
        left = {side: l1.SideLeft(state, options, side) for side in (False, True)}
        units, money = {side: np.zeros_like(state.q_in) for side in left}, np.zeros(())
        for _ in range(8):
            selling, day = bool(rng.random() < 0.5), int(rng.integers(0, 11))
            room = int(min(left[selling].cap(units[selling])[day], 30))
            price = 5
            if not selling:
                room = min(room, int(left[selling].budget(money) // price))
            if room:
                quantity = int(rng.integers(1, room + 1))
                units[selling][day] += quantity
                money = money + (0 if selling else quantity * price)
                planned.append((selling, quantity, price, day))
        ledger = Ledger(state, options)
        for selling, quantity, price, day in planned:  # signed one after the other, each still fits
            assert quantity <= ledger.caps.of(selling)[day]
            assert selling or quantity * price <= ledger.caps.budget
            ledger.sign(selling, quantity, price, day)


def test_signed_deals_equal_the_completed_state() -> None:
    state = buying_day()
    ledger = Ledger(state, ECONOMIC)
    ledger.sign(False, 6, 9, 2)
    ledger.sign(True, 3, 21, 4)
    signed = state.with_signed(schedule({2: 6}), schedule({2: 54}), schedule({4: 3}), schedule({4: 63}))
    for kept, fresh in zip(ledger.caps, l1.caps(signed, ledger.options)):
        np.testing.assert_array_equal(kept, fresh)
    for kept, fresh in zip(ledger.state, signed):
        np.testing.assert_array_equal(kept, fresh)


def test_a_planned_purchase_is_nothing_to_sell_from() -> None:
    state = a_day()
    assert l1.SideLeft(state, ECONOMIC, True).cap(np.zeros_like(state.q_in))[0] == 0
    ledger = Ledger(state, ECONOMIC)
    ledger.sign(False, 10, 10, 0)
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


def test_the_layer_buys_unless_told_to_sell_and_masks_its_own_side() -> None:
    state = buying_day(inventory_output=3)
    layer = L1SafetyLayer(horizon=40)
    buying, selling = layer.compute(state), layer.compute(state, is_buying=False)
    assert buying.baseline == layer.compute(state, is_buying=True).baseline != selling.baseline
    assert layer.clip_action(buying.baseline, buying) == (30, 9, 0, True)
    for output, cap in ((buying, buying.Q_safe), (selling, selling.Q_safe_sell)):
        np.testing.assert_array_equal(output.time_mask, l1.time_mask(cap, output.issue))
    nothing = layer.compute(a_day(n_lines=0), is_buying=False)  # nothing to sell, but it could buy
    assert np.isinf(nothing.time_mask).all() and layer.clip_action(buying.baseline, nothing, False).valid == 0


def test_a_day_is_open_on_the_side_that_can_still_deal() -> None:
    """Without material nothing can be sold for today, but material can be bought."""
    state = a_day()
    layer = L1SafetyLayer(state.horizon, ECONOMIC)
    buying, selling = layer.compute(state, is_buying=True), layer.compute(state, is_buying=False)
    assert buying.Q_safe[0] > 0 == selling.Q_safe_sell[0]
    assert buying.time_mask[0] == 0 and selling.time_mask[0] == -np.inf
