"""Features: the worked vector, ranges, equality of batch and single day, and what each number means."""

import numpy as np
import pytest

from marlab.lab.errors import UserError
from marlab.market.logs.daystate import DayState, stack
from marlab.market.rules import features, l1
from marlab.market.rules.features import FeatureOptions, StateBuilder
from marlab.market.rules.goals import BUY
from marlab.market.rules.l1 import Action, L1Options
from marlab.market.rules.offers import Offers, OfferSlots, no_offers, offer_slots
from tests.market.days import a_day, random_days, schedule

PLAIN = FeatureOptions()
OPTIONS = [
    PLAIN,
    FeatureOptions(channels=12),
    FeatureOptions(offers="none"),
]


def vector_day() -> DayState:
    arrivals, payments = schedule({0: 8, 1: 20, 3: 5}), schedule({0: 80, 1: 210, 3: 55})
    return a_day(inventory_input=5, inventory_output=3, production_cost=4, q_in=arrivals, pay=payments)


def random_offers(rows: int, count: int, seed: int) -> Offers:
    rng = np.random.default_rng(seed)
    return Offers(
        rng.integers(0, rows, count),
        rng.integers(0, 2, count),
        rng.integers(-1, 12, count).astype(float),
        rng.integers(1, 31, count).astype(float),
        rng.integers(1, 80, count).astype(float),
        rng.integers(-20, 20, count).astype(float),
    )


def test_the_worked_vector_of_the_state() -> None:
    x_static, x_temporal, roles = StateBuilder(horizon=40).build(vector_day())
    np.testing.assert_allclose(x_static, [0.9, 0.005, 0.003, 0.1, 1, 0.08, 0.2, 0.4, 0.033, 0, 0.0345, 0], atol=1e-12)
    assert x_temporal.shape == (41, 10)
    np.testing.assert_allclose(x_temporal[0], [0.008, 0, 0.01, 0.003, 0.897, 0.888, 0, 0, 0, 8 / 900], atol=1e-12)
    np.testing.assert_allclose(x_temporal[1], [0.02, 0, 0.01, 0.013, 0.877, 0.863, 0.0075, 0, 0, 20 / 890], atol=1e-12)
    assert x_temporal[3, 6] == pytest.approx(0.015)
    assert roles.tolist() == [1, 1]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_ranges_shapes_and_single_days(options: FeatureOptions) -> None:
    states = random_days(80, seed=1)
    slots = offer_slots(states, random_offers(80, 900, seed=2))
    x_static = features.static_features(states, options)
    x_temporal = features.temporal_features(states, slots, options)
    assert x_static.shape == (80, 12) and x_temporal.shape == (80, 41, options.channels)
    high = [2, 1, 1, 1, 1, 1, 2, 2, 1, 1, 1, 1]
    assert (x_static >= 0).all() and (x_static <= high).all()
    for channels, low, top in (((3, 4, 5), -1, 2), ((6, 7), -1, 1), ((8, 9), 0, 1)):
        part = x_temporal[..., channels]
        assert (part >= low).all() and (part <= top).all()
    assert np.isfinite(x_temporal).all()
    for i in range(0, 80, 7):
        alone = states.take(i)
        own = OfferSlots(*(part[i] for part in slots))
        np.testing.assert_array_equal(features.static_features(alone, options), x_static[i])
        np.testing.assert_allclose(features.temporal_features(alone, own, options), x_temporal[i], atol=1e-12)


def test_the_state_of_an_offer_decides_nothing_but_its_own_slot() -> None:
    states = random_days(1, seed=3).take(np.zeros(3, dtype=int)).replace(price_in=np.full(3, 10.0))
    offers = Offers(np.array([1]), np.array([BUY]), *(np.array([v]) for v in (4.0, 10.0, 8.0, 0.0)))
    slots = offer_slots(states, offers)
    weight = np.sqrt(0.5)
    assert slots.weight[1, BUY, 4] == pytest.approx(weight)
    assert slots.weighted_price[1, BUY, 4] == pytest.approx(8 * weight)
    assert slots.pressure[1, BUY, 4] == pytest.approx(10 * weight * 10 / 8)
    assert (slots.weight > 0).sum() == 1


def test_prices_mix_deals_offers_and_the_market() -> None:
    state = stack([a_day(q_in=schedule({1: 2, 2: 2}), pay=schedule({1: 24, 2: 24}))])
    offers = Offers(
        np.zeros(2, int), np.array([BUY, BUY]), np.array([2.0, 3.0]), np.full(2, 5.0), np.full(2, 15.0), np.zeros(2)
    )
    x_temporal = features.temporal_features(state, offer_slots(state, offers), PLAIN)[0]
    np.testing.assert_allclose(x_temporal[:4, 6] * 50, [0, 1.5, 0.6 * 12 + 0.3 * 15 + 1 - 10, 0.6 * 5], atol=1e-12)
    quiet = features.temporal_features(state, offer_slots(state, offers), FeatureOptions(offers="none"))[0]
    np.testing.assert_array_equal(quiet, features.temporal_features(state, no_offers((1,)), PLAIN)[0])


def test_extension_channels_follow_material_and_products() -> None:
    state = a_day(inventory_input=4, inventory_output=1, q_in=schedule({1: 15}), q_out=schedule({2: 3}))
    channels = features.temporal_features(state, no_offers(), FeatureOptions(channels=12))[:4, 10:] * 1000
    assert channels.tolist() == [[0, 5], [5, 15], [0, 17], [0, 17]]


def a_thread(state: DayState, **changed: object) -> np.ndarray:
    options = L1Options()
    selling = np.asarray(changed.pop("selling", True))
    caps = l1.caps(state, options)
    values: dict[str, object] = {
        "selling": selling,
        "base": l1.baseline(state, caps, selling, options),
        "cap": caps.of(selling),
        "mask": l1.time_mask(caps.of(selling), l1.issue_of(state, selling)),
        "latest": Action(*(np.array(v) for v in (8.0, 25.0, 4.0))),
        "history_length": np.array(3.0),
        "relative_time": np.array(0.25),
    }
    x_temporal = features.temporal_features(state, no_offers(), PLAIN)
    return features.thread_features(state, x_temporal, np.arange(16.0), features.Negotiations(**values | changed))


def test_features_of_a_thread() -> None:
    state = a_day(inventory_output=4, q_out=schedule({4: 2}))
    row = a_thread(state)
    assert row.shape == (24,)
    closeness = 1 / (1 + 5 * abs(25 - 7) / 50)
    urgency, pressure = 1 / 5, 2 / 860
    np.testing.assert_allclose(row[0], 1 + 0.5 * (urgency + pressure + 0.25 + closeness))
    cap = l1.caps(state, L1Options()).sell[4]
    np.testing.assert_allclose(
        row[1:14],
        [0.1, 1, cap / 1000, 2 / 1000, 21 / 50, 4 / 1000, 6 / 1000, 5 / 50, 7 / 50, 3 / 20, 0.25, 18 / 50, 2 / 1000],
    )
    np.testing.assert_array_equal(row[14:], features.temporal_features(state, no_offers(), PLAIN)[4])


def test_a_thread_without_offers_looks_at_its_baseline() -> None:
    nothing = Action(*(np.array(np.nan),) * 3)
    row = a_thread(a_day(), latest=nothing, history_length=np.array(0.0), selling=False)
    assert row[1] == 0 and row[12] == 0 and row[13] == 0
    assert row[0] == pytest.approx(1 + 0.5 * (1 + 0 + 0.25 + 1))


def test_a_thread_on_a_closed_day_is_marked() -> None:
    far = Action(*(np.array(v) for v in (8.0, 25.0, 12.0)))
    assert a_thread(a_day(), latest=far)[2] == 0
    beyond = a_thread(a_day(), latest=far._replace(day=np.array(55.0)))
    assert beyond[1] == 1


def test_batched_threads_equal_single_ones() -> None:
    states = random_days(50, seed=6)
    rng = np.random.default_rng(7)
    options = L1Options()
    selling = rng.random(50) < 0.5
    caps = l1.caps(states, options)
    offered = rng.random(50) < 0.7
    latest = Action(*(np.where(offered, rng.integers(1, high, 50), np.nan) for high in (30, 60, 11)))
    parts = (
        features.temporal_features(states, offer_slots(states, random_offers(50, 300, seed=8)), PLAIN),
        rng.random((50, 16)) * 20,
        selling,
        l1.baseline(states, caps, selling, options),
        caps.of(selling),
        l1.time_mask(caps.of(selling), l1.issue_of(states, selling)),
        latest,
        rng.integers(0, 30, 50).astype(float),
        rng.random(50),
    )
    batched = features.thread_features(states, *parts[:2], features.Negotiations(*parts[2:]))
    signed = rng.integers(0, 5, (50, 41)).astype(float)
    issue = l1.issue_of(states, selling)
    aux = features.micro_aux(states, caps.budget, selling, issue, parts[-1], latest.day, parts[3].day, parts[1], signed)
    assert batched.shape == (50, 24) and aux.shape == (50, 7)
    for i in range(50):
        own = [Action(*(v[i] for v in part)) if isinstance(part, Action) else part[i] for part in parts]
        single = features.thread_features(states.take(i), *own[:2], features.Negotiations(*own[2:]))
        np.testing.assert_allclose(single, batched[i], atol=1e-12)
        alone = features.micro_aux(
            states.take(i), caps.budget[i], selling[i], l1.Issue(*(b[i] for b in issue)), parts[-1][i],
            latest.day[i], parts[3].day[i], parts[1][i], signed[i],
        )  # fmt: skip
        np.testing.assert_allclose(alone, aux[i], atol=1e-12)


def test_aux_counts_what_is_left_of_the_goal_of_the_offers_bucket() -> None:
    state = a_day(day=25)
    selling = np.array(True)
    signed = schedule({2: 3, 3: 4, 7: 1, 8: 9})
    aux = features.micro_aux(
        state, np.array(5000.0), selling, l1.issue_of(state, selling), np.array(0.5), np.array(5.0), np.array(0.0),
        np.arange(16.0), signed,
    )  # fmt: skip
    np.testing.assert_allclose(aux, [0.5, 0.25, 0.5, 18 / 50, 22 / 50, 1, (6 - 5) / 10])
    waiting = features.micro_aux(
        state, np.array(5000.0), selling, l1.issue_of(state, selling), np.array(0.5), np.array(np.nan),
        np.array(0.0), np.arange(16.0), signed,
    )  # fmt: skip
    np.testing.assert_allclose(waiting[5:], [0, (2 - 3) / 10])


def test_global_features_and_history_rows() -> None:
    both = features.global_features(np.arange(16.0), np.ones(12), np.array(3), np.array(5))
    assert both.shape == (30,) and both[28:].tolist() == [0.3, 0.5]
    rows = features.history_rows(
        np.array([5.0, 6]), np.array([10.0, 11]), np.array([-1.0, 60]), np.array([True, False])
    )
    assert rows.tolist() == [[5, 10, 0, 1], [6, 11, 40, 0]]


def test_wrong_options_are_refused_by_name() -> None:
    with pytest.raises(UserError, match="channels is 11; it must be one of 10, 12"):
        FeatureOptions(channels=11)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="horizon of at least 1"):
        FeatureOptions(horizon=0)
    with pytest.raises(ValueError, match="days ahead"):
        features.static_features(a_day(horizon=5), PLAIN)
