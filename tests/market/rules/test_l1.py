"""L1: worked vectors, the bounds it promises, and the two rule sets."""

import numpy as np
import pytest

from marlab.lab.errors import UserError
from marlab.market.agent.safety import Ledger
from marlab.market.logs.daystate import DayState
from marlab.market.rules import l1
from marlab.market.rules.l1 import Action, L1Options
from tests.market.days import a_day, random_days, schedule

GUIDE = L1Options()
ECONOMIC = L1Options(rules="economic")
EVERY_OPTION = [GUIDE, L1Options(short_reserve=True), ECONOMIC]


def buying_day(**given: object) -> DayState:
    """The state of the worked vector for buying."""
    arrivals, payments = schedule({0: 8, 1: 20, 3: 5}), schedule({0: 80, 1: 210, 3: 55})
    return a_day(inventory_input=5, q_in=arrivals, pay=payments, **given)


def test_the_worked_vector_of_buying() -> None:
    state = buying_day()
    waiting = l1.backlog(state.inventory_input, state.q_in, state.n_lines)
    assert waiting[:6].tolist() == [5, 3, 13, 3, 0, 0]
    caps = l1.caps(state, GUIDE)
    assert caps.buy[:6].tolist() == [862, 862, 862, 862, 860, 850]
    assert caps.buy[38:].tolist() == [520, 510, 510]
    assert caps.budget == 7655
    assert l1.guide_baseline(state, caps, False) == (431, 9.5, 0)
    projected = l1.baseline(state, caps, False, GUIDE)
    assert projected == (30, 9.5, 0)
    offer = l1.clip_action(projected, caps.buy, caps.budget, False, l1.issue_of(state, False))
    assert offer == (30, 9, 0, True)


def test_the_worked_vector_of_selling() -> None:
    state = a_day(inventory_output=3, q_out=schedule({0: 6, 2: 25}))
    caps = l1.caps(state, GUIDE)
    assert caps.sell[:5].tolist() == [2, 2, 2, 12, 22]
    assert l1.guide_baseline(state, caps, True) == (1.5, 21, 0)
    with_material = state.replace(inventory_input=np.array(5.0), q_in=schedule({0: 8}))
    assert l1.sellable(with_material) == 7


def test_lines_make_what_material_allows() -> None:
    state = a_day(inventory_input=14, q_in=schedule({1: 3, 4: 25}))
    assert l1.production(state, state.q_in)[:8].tolist() == [10, 7, 0, 0, 10, 10, 5, 0]


def test_the_first_level_counts_on_its_mean_supply() -> None:
    state = a_day(input_product=0, output_product=1, inventory_input=2, exogenous_in_mean=6)
    assert l1.production(state, state.q_in)[:4].tolist() == [2, 6, 6, 6]


def test_the_short_reserve_is_an_option() -> None:
    state = a_day()
    assert l1.caps(state, L1Options(short_reserve=True)).budget == 9000 - 900


def test_the_last_day_of_a_game() -> None:
    caps = l1.caps(a_day(day=99), GUIDE)
    assert caps.buy[0] == 10
    assert (caps.buy[1:] == 0).all()


@pytest.mark.parametrize("options", EVERY_OPTION, ids=str)
def test_caps_are_never_negative_and_the_batch_equals_single_days(options: L1Options) -> None:
    states = random_days(60, seed=1)
    selling = np.arange(60) % 2 == 0
    rounds = np.arange(60) % 20
    caps = l1.caps(states, options)
    base = l1.baseline(states, caps, selling, options, rounds)
    mask = l1.time_mask(caps.of(selling), l1.issue_of(states, selling))
    assert (caps.buy >= 0).all() and (caps.sell >= 0).all() and (caps.budget >= 0).all()
    if options.rules == "guide":
        assert (caps.buy[:, -1] == caps.buy[:, -2]).all()
    for i in range(60):
        day = states.take(i)
        alone = l1.caps(day, options)
        for batched, single in zip(caps, alone):
            np.testing.assert_array_equal(batched[i], single)
        single_base = l1.baseline(day, alone, bool(selling[i]), options, int(rounds[i]))
        np.testing.assert_allclose([part[i] for part in base], single_base, rtol=0, atol=1e-12)
        issue = l1.issue_of(day, bool(selling[i]))
        np.testing.assert_array_equal(mask[i], l1.time_mask(alone.of(bool(selling[i])), issue))


def test_threads_of_one_day_broadcast_against_its_state() -> None:
    state = buying_day(inventory_output=3)
    caps = l1.caps(state, GUIDE)
    selling = np.array([True, False, True])
    base = l1.baseline(state, caps, selling, GUIDE)
    for i, side in enumerate(selling):
        np.testing.assert_array_equal([part[i] for part in base], l1.baseline(state, caps, bool(side), GUIDE))


@pytest.mark.parametrize("options", EVERY_OPTION, ids=str)
def test_clipped_offers_respect_every_bound(options: L1Options) -> None:
    states = random_days(4000, seed=2)
    rng = np.random.default_rng(3)
    selling = rng.random(4000) < 0.5
    caps = l1.caps(states, options)
    issue = l1.issue_of(states, selling)
    cap = caps.of(selling)
    wild = Action(rng.normal(10, 40, 4000), rng.normal(20, 40, 4000), rng.integers(-5, 60, 4000).astype(float))
    offer = l1.clip_action(wild, cap, caps.budget, selling, issue, l1.time_mask(cap, issue))
    good = offer.valid
    assert 50 < good.sum() < 4000
    quantity, price, day = (part[good] for part in offer[:3])
    assert (quantity <= l1.at(cap, offer.day)[good]).all()
    assert (quantity * price <= caps.budget[good] + 1e-6)[~selling[good]].all()
    for part, low, high in (
        (quantity, issue.quantity_min, issue.quantity_max),
        (price, issue.price_min, issue.price_max),
        (day, issue.first, issue.last),
    ):
        assert ((part >= low[good]) & (part <= high[good])).all()
        assert (part == np.rint(part)).all()


def test_what_is_clipped_may_be_accepted() -> None:
    states = random_days(3000, seed=4)
    rng = np.random.default_rng(5)
    selling = rng.random(3000) < 0.5
    caps = l1.caps(states, GUIDE)
    cap, issue = caps.of(selling), l1.issue_of(states, selling)
    offer = Action(rng.integers(1, 31, 3000) * 1.0, rng.integers(1, 60, 3000) * 1.0, rng.integers(-2, 14, 3000) * 1.0)
    accepted = l1.can_accept(offer, cap, caps.budget, selling, issue)
    assert 100 < accepted.sum() < 2900
    inside = np.clip(offer.price, issue.price_min, issue.price_max) == offer.price
    clipped = l1.clip_action(offer, cap, caps.budget, selling, issue, l1.time_mask(cap, issue))
    same = clipped.valid & (clipped.quantity == offer.quantity) & (clipped.day == offer.day)
    np.testing.assert_array_equal(accepted[inside], same[inside])


def test_prices_are_rounded_to_the_own_side() -> None:
    state = a_day(price_in=100, price_out=100, balance=1e6)
    caps = l1.caps(state, GUIDE)
    action = Action(np.array(5.4), np.array(99.5), np.array(0.0))
    bought = l1.clip_action(action, caps.buy, caps.budget, False, l1.issue_of(state, False))
    sold = l1.clip_action(action, caps.sell, caps.budget, True, l1.issue_of(state, True))
    assert bought == (5, 99, 0, True)
    assert sold == (5, 100, 0, True)


def test_masks_open_exactly_where_a_unit_fits() -> None:
    cap = np.array([[0, 0.99, 1, 5], [0, 0, 0, 0.5]])
    mask = l1.time_mask(cap)
    assert mask.tolist() == [[-np.inf, -np.inf, 0, 0], [-np.inf] * 4]
    assert l1.open_mask(mask, np.array([1.0, 2.0])).tolist() == [mask[0].tolist(), [-np.inf, -np.inf, 0, -np.inf]]
    for beyond in (4.0, 9.0, -1.0):
        assert l1.open_mask(mask, np.array([1.0, beyond]))[1].tolist() == [0, -np.inf, -np.inf, -np.inf]
    assert np.isfinite(np.exp(l1.open_mask(mask, np.array([0.0, 0.0]))).sum(-1)).all()


def test_days_outside_the_issue_are_closed() -> None:
    state = a_day(day=95)
    mask = l1.time_mask(l1.caps(state, GUIDE).sell, l1.issue_of(state, True))
    assert np.flatnonzero(mask == 0).tolist() == [0, 1, 2, 3, 4]


def test_missing_issue_bounds_follow_the_league() -> None:
    known = a_day(price_in=15.7)
    unknown = known.replace(**{name: np.array(np.nan) for name in known._fields if name.startswith("buy_")})
    for told, assumed in zip(l1.issue_of(known, False), l1.issue_of(unknown, False)):
        assert told == assumed


def test_the_baseline_depends_on_the_state_of_the_moment_only() -> None:
    states = random_days(200, seed=6)
    selling = np.arange(200) % 2 == 0
    changed = states.replace(score=states.score + 1, initial_balance=states.initial_balance * 2)
    for options in (GUIDE, ECONOMIC):
        first, second, other = (
            l1.baseline(days, l1.caps(days, options), selling, options) for days in (states, states, changed)
        )
        for a, b, c in zip(first, second, other):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(a, c)


def test_allowed_purchases_can_all_be_processed_before_the_end() -> None:
    rng = np.random.default_rng(7)
    for seed in range(30):
        length = int(rng.integers(2, 39))
        start = int(rng.integers(0, length))
        ledger = Ledger(a_day(day=start, n_steps=length, inventory_input=int(rng.integers(0, 8)), balance=1e9), GUIDE)
        left, planned = length - start, np.zeros(41)
        for _ in range(12):
            day = int(rng.integers(0, left))
            allowed = int(l1.SideLeft(ledger.state, GUIDE, False).cap(planned)[day])
            if allowed and rng.random() < 0.5:
                ledger.sign(False, int(rng.integers(1, allowed + 1)), 1, day)
            elif allowed:
                planned[day] += int(rng.integers(1, allowed + 1))
        for day in range(left):  # and greedily whatever is left
            planned[day] += int(l1.SideLeft(ledger.state, GUIDE, False).cap(planned)[day])
        material = ledger.state.inventory_input
        for day in range(left):
            material = max(0, material + ledger.state.q_in[day] + planned[day] - 10)
        assert material == 0, f"seed {seed}"


def test_no_room_means_no_offer() -> None:
    state = a_day(day=95, inventory_input=4, q_out=schedule(dict.fromkeys(range(5), 4)))
    base = l1.baseline(state, l1.caps(state, ECONOMIC), True, ECONOMIC)
    assert base.quantity == 0
    caps = l1.caps(state, ECONOMIC)
    assert not l1.clip_action(base, caps.sell, caps.budget, True, l1.issue_of(state, True)).valid


def test_wrong_options_are_refused_by_name() -> None:
    with pytest.raises(UserError, match="rules is 'none'; it must be one of guide"):
        L1Options(rules="none")  # type: ignore[arg-type]
    assert L1Options(reserve=0).reserve == 0
    with pytest.raises(UserError, match="reserve"):
        L1Options(reserve=-1)


def test_a_short_budget_bounds_the_purchase_and_empty_lines_sell_nothing() -> None:
    poor = a_day(balance=1100)  # 1000 of it are the reserve
    assert l1.guide_baseline(poor, l1.caps(poor, GUIDE), False).quantity == 10
    assert (l1.caps(a_day(n_lines=0), GUIDE).sell == 0).all()


def test_an_offer_beyond_what_is_known_is_not_accepted() -> None:
    """Caps look three days ahead, the league ten."""
    state = a_day(horizon=3)
    issue = l1.issue_of(state, True)
    cap = np.array([0.0, 0.0, 0.0, 5.0])

    def accepts(quantity: float, day: float) -> bool:
        offer = Action(np.array(quantity), np.array(20.0), np.array(day))
        return bool(l1.can_accept(offer, cap, np.array(0.0), True, issue))

    assert issue.last == 10 and accepts(5, 3)
    assert not accepts(6, 3) and not accepts(1, 2) and not accepts(1, 4) and not accepts(1, -1)
    wish = Action(np.array(9.0), np.array(20.0), np.array(7.0))  # brought to the last day that is known
    assert l1.clip_action(wish, cap, np.array(0.0), True, issue) == (5, 20, 3, True)


def test_a_day_that_the_mask_closes_gets_no_offer() -> None:
    state = a_day()
    caps, issue = l1.caps(state, GUIDE), l1.issue_of(state, False)
    action, mask = Action(np.array(5.0), np.array(10.0), np.array(2.0)), np.zeros(41)
    assert l1.clip_action(action, caps.buy, caps.budget, False, issue, mask).valid
    mask[2] = -np.inf
    assert not l1.clip_action(action, caps.buy, caps.budget, False, issue, mask).valid
    late = action._replace(day=np.array(11.0))  # open, but not in the issue
    assert not l1.clip_action(late, caps.buy, caps.budget, False, issue, mask).valid


def test_whole_prices_stay_on_both_sides_of_one_batch() -> None:
    issue = l1.issue_of(a_day(price_in=100), False)
    price, selling = np.array([95.0, 95.0, 95.4, 95.4]), np.array([False, True, False, True])
    assert l1.whole_price(price, selling, issue).tolist() == [95, 95, 95, 96]


def test_planned_deals_lower_what_is_left_of_their_side() -> None:
    state = a_day(day=50, inventory_input=4, q_out=schedule({3: 2}))
    cap = l1.caps(state, ECONOMIC).sell
    planned = schedule({1: 3, 3: 1})
    np.testing.assert_array_equal(l1.SideLeft(state, ECONOMIC, True).cap(planned), np.maximum(0, cap - planned))
    for selling in (False, True):
        assert l1.SideLeft(buying_day(), GUIDE, selling).budget(np.array(55.0)) == 7600
