"""Samples against a plain walk through the log: what was known, what was done, and nothing that came later."""

import numpy as np
import pytest

from marlab.market.logs.daystate import stack
from marlab.market.logs.worldlog import ACCEPT, END, NONE, REJECT
from marlab.market.rules import features, goals, l1
from marlab.market.rules.executor import HeuristicL4Coordinator
from marlab.market.rules.features import FeatureOptions
from marlab.market.rules.goals import Trades
from marlab.market.rules.l1 import Action, L1Options
from marlab.market.rules.offers import Offers, as_trades, offer_slots
from marlab.market.samples.extract import extract, global_features, nearest_open, with_goals
from marlab.market.samples.options import SampleOptions
from tests.market.sample_tools import cut_after, moments, tracked_logs

LOGS = tracked_logs()
IDS = [f"{log.agent_type}-{log.index}" for log in LOGS]
OPTIONS = [
    SampleOptions(),
    SampleOptions(l1=L1Options(rules="economic"), features=FeatureOptions(channels=12)),
]


def by_row(log, samples) -> np.ndarray:
    """Number of the sample of each row of the decisions table; rows are told apart by call and negotiation."""
    key = {(int(s), int(n)): i for i, (s, n) in enumerate(zip(samples.micro["seq"], samples.micro["negotiation"]))}
    return np.array([key[int(s), int(n)] for s, n in zip(log.decisions["seq"], log.decisions["negotiation"])])


@pytest.mark.parametrize("log", LOGS, ids=IDS)
def test_one_sample_per_own_decision(log):
    samples = extract(log, SampleOptions())
    assert samples.rows("micro") == len(log.decisions["seq"]) == len(set(by_row(log, samples)))
    assert samples.rows("macro") == len(log.days)
    assert samples.calls["threads"].sum() == samples.rows("micro")
    np.testing.assert_array_equal(
        np.repeat(np.arange(samples.rows("calls")), samples.calls["threads"]), samples.micro["call"]
    )


@pytest.mark.parametrize("log", LOGS, ids=IDS)
def test_histories_are_the_offers_before_the_decision(log):
    samples = extract(log, SampleOptions())
    found, there = samples.histories(by_row(log, samples))
    for moment, rows, present in zip(sorted(moments(log)), found, there):
        today = log.days.day[moment.day_row]
        told = [(q, p, d - today, mine) for q, p, d, mine in moment.history[-20:]]
        assert present.sum() == len(told)
        np.testing.assert_array_equal(rows[20 - len(told) :], np.array(told, np.float32).reshape(-1, 4))


@pytest.mark.parametrize("log", LOGS, ids=IDS)
def test_the_offer_to_be_predicted_is_not_the_last_of_its_history(log):
    samples = extract(log, SampleOptions())
    rows, there = samples.histories(np.arange(samples.rows("micro")))
    last_is_mine = there[:, -1] & (rows[:, -1, 3] == 1)
    assert not last_is_mine.any()  # in this protocol the partner spoke last, or nobody did
    length = samples.micro["history_length"]
    assert (there.any(1) == (length > 0)).all() and (samples.micro["aux"][:, 5] == there.any(1)).all()


@pytest.mark.parametrize("options", OPTIONS, ids=["guide", "economic"])
@pytest.mark.parametrize("log", LOGS, ids=IDS)
def test_l1_and_features_of_every_decision_equal_those_computed_one_by_one(log, options):
    samples = extract(log, options)
    goal = np.random.default_rng(1).uniform(0, 30, (len(log.days), 16))
    filled = with_goals(samples, goal)
    goal = goal.astype(np.float32).astype(np.float64)
    for moment, i in zip(sorted(moments(log)), by_row(log, samples)):
        table = {name: values[moment.row] for name, values in log.decisions.items()}
        caps = l1.caps(moment.state, options.l1)
        base = l1.baseline(moment.state, caps, moment.selling, options.l1, int(table["round"]))
        issue = l1.issue_of(moment.state, moment.selling)
        cap = caps.of(moment.selling)
        mask = l1.time_mask(cap, issue)
        assert samples.micro["role"][i] == moment.selling
        np.testing.assert_allclose(samples.micro["baseline"][i], base, rtol=1e-6)
        is_open = l1.open_mask(mask, base.day) == 0
        np.testing.assert_array_equal(samples.micro["time_open"][i], is_open)
        assert samples.micro["masked"][i] == np.isneginf(mask).all()

        batch = stack([moment.state])
        x_temporal = features.temporal_features(batch, offer_slots(batch, moment.offers), options.features)[0]
        today = log.days.day[moment.day_row]
        last = moment.history[-1] if moment.history else (np.nan, np.nan, np.nan, False)
        latest = Action(np.array(last[0]), np.array(last[1]), np.array(last[2]) - today)
        offer_day = np.array(table["received_day"] - today if table["received_quantity"] != NONE else np.nan)
        for made, wanted in ((samples, np.zeros(16)), (filled, goal[moment.day_row])):
            negotiation = features.Negotiations(
                moment.selling, base, cap, mask, latest, len(moment.history), table["relative_time"]
            )
            thread = features.thread_features(moment.state, x_temporal, wanted, negotiation)
            aux = features.micro_aux(
                moment.state, caps.budget, moment.selling, issue, table["relative_time"], offer_day, base.day, wanted,
                moment.signed,
            )  # fmt: skip
            np.testing.assert_allclose(made.micro["thread"][i], thread, rtol=2e-6, atol=2e-6)
            np.testing.assert_allclose(made.micro["aux"][i], aux, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("log", LOGS, ids=IDS)
def test_labels_are_the_experts_actions(log):
    samples = extract(log, SampleOptions())
    rows = by_row(log, samples)
    micro = {name: values[rows] for name, values in samples.micro.items()}
    table = log.decisions
    np.testing.assert_array_equal(micro["op"], table["op"])
    offers = micro["op"] == REJECT
    today = log.negotiations["day"][table["negotiation"]]
    for column, name in enumerate(("quantity", "price")):
        np.testing.assert_allclose(
            (micro["residual"] + micro["baseline"][:, :2])[offers, column], table[name][offers], rtol=1e-6
        )
    assert (micro["residual"][~offers] == 0).all() and not micro["time_valid"][~offers].any()
    delta = table["day"] - today
    exact = offers & (micro["time_shift"] == 0)
    np.testing.assert_array_equal(micro["time_label"][exact], delta[exact])
    assert (micro["time_label"][exact & (delta == 0)] == 0).all()
    np.testing.assert_array_equal(micro["time_valid"], offers & (micro["time_shift"] <= 2))
    assert np.take_along_axis(micro["time_open"], micro["time_label"][:, None].astype(int), 1).all()


def test_some_labels_are_today_and_some_are_projected():
    together = [extract(log, SampleOptions()).micro for log in LOGS]
    rejects = [m["op"] == REJECT for m in together]
    assert sum(((m["time_label"] == 0) & m["time_valid"]).sum() for m in together) > 10
    assert sum((m["time_shift"][r] > 0).sum() for m, r in zip(together, rejects)) > 10
    assert any((m["op"] == END).any() for m in together)


def test_nearest_open_prefers_the_earlier_of_two():
    is_open = np.array([[True, False, True, False], [False, False, False, True], [True, True, True, True]])
    label, shift = nearest_open(is_open, np.array([1.0, 0.0, 2.0]))
    assert label.tolist() == [0, 3, 2] and shift.tolist() == [1, 3, 0]


@pytest.mark.parametrize("log", LOGS, ids=IDS)
def test_actions_beyond_the_caps_are_marked(log):
    samples = extract(log, SampleOptions())
    for moment, i in zip(sorted(moments(log)), by_row(log, samples)):
        table = {name: values[moment.row] for name, values in log.decisions.items()}
        if table["op"] == END:
            assert not samples.micro["breaks_caps"][i]
            continue
        prefix = "received_" if table["op"] == ACCEPT else ""
        quantity, price = float(table[prefix + "quantity"]), float(table[prefix + "price"])
        day = int(table[prefix + "day"] - log.days.day[moment.day_row])
        caps = l1.caps(moment.state, L1Options())
        allowed = quantity <= caps.of(moment.selling)[day] and (moment.selling or quantity * price <= caps.budget)
        assert samples.micro["breaks_caps"][i] == (not allowed)


@pytest.mark.parametrize("log", LOGS, ids=IDS)
def test_offers_that_may_be_accepted_are_marked(log):
    samples = extract(log, SampleOptions())
    for moment, i in zip(sorted(moments(log)), by_row(log, samples)):
        quantity, day, price = (
            int(log.decisions[f"received_{name}"][moment.row]) for name in ("quantity", "day", "price")
        )
        if quantity == NONE:
            assert not samples.micro["acceptable"][i]
            continue
        caps = l1.caps(moment.state, L1Options())
        cap = caps.of(moment.selling)[day - int(log.days.day[moment.day_row])]
        assert samples.micro["acceptable"][i] == (
            quantity <= cap and (moment.selling or quantity * price <= caps.budget)
        )


@pytest.mark.parametrize("log", LOGS, ids=IDS)
def test_daily_inputs_come_from_yesterday_and_labels_from_the_day(log):
    options = SampleOptions()
    samples = extract(log, options)
    by_day = {}
    for row in range(len(log.decisions["seq"])):
        day = int(log.negotiations["day"][log.decisions["negotiation"][row]])
        selling = int(log.negotiations["seller"][log.decisions["negotiation"][row]] == log.index)
        for prefix, there in (
            ("received_", log.decisions["received_quantity"][row] != NONE),
            ("", log.decisions["op"][row] == REJECT),
        ):
            if there:
                offer = [float(log.decisions[prefix + name][row]) for name in ("day", "quantity", "price")]
                by_day.setdefault(day, []).append([selling, *offer, float(log.decisions["round"][row])])
    for row, day in enumerate(log.days.day.astype(int)):
        one = log.days.take(slice(row, row + 1))

        def offers_of(which: int, today: int = day) -> Offers:
            side, delivery, quantity, price, rounds = np.array(by_day.get(which, []), float).reshape(-1, 5).T
            return Offers(np.zeros(len(side), int), side.astype(int), delivery - today, quantity, price, rounds)

        expected = features.temporal_features(one, offer_slots(one, offers_of(day - 1)), options.features)
        np.testing.assert_allclose(samples.macro["x_temporal"][row], expected[0], rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(
            samples.macro["x_static"][row], features.static_features(one, options.features)[0], rtol=1e-6
        )
        c = log.contracts
        signed = (c["day"] == day) & (c["negotiation"] != NONE)
        deals = Trades(
            np.zeros(signed.sum(), int),
            (c["seller"][signed] == log.index).astype(int),
            c["delivery"][signed] - float(day),
            c["quantity"][signed].astype(float),
            c["price"][signed].astype(float),
            np.ones(signed.sum()),
        )
        label = goals.goal_labels(one, deals, as_trades(offers_of(day), 1))
        np.testing.assert_allclose(samples.macro["label"][row], label[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("log", LOGS, ids=IDS)
def test_what_happens_later_changes_no_earlier_input(log):
    whole = extract(log, SampleOptions(features=FeatureOptions(extra=True)))
    days = log.negotiations["day"][log.decisions["negotiation"]]
    for place in np.linspace(0, len(days) - 1, 5).astype(int):
        seq, day = int(log.decisions["seq"][place]), int(days[place])
        part = extract(cut_after(log, seq, day), SampleOptions(features=FeatureOptions(extra=True)))
        for name in ("x_static", "x_temporal", "x_role", "extra"):
            np.testing.assert_array_equal(part.macro[name], whole.macro[name][: part.rows("macro")])
        n = part.rows("micro")
        assert n == (log.decisions["seq"] <= seq).sum()
        for name in (
            "thread",
            "aux",
            "baseline",
            "residual",
            "time_open",
            "time_label",
            "history_length",
            "alpha",
            "partner",
        ):
            np.testing.assert_array_equal(part.micro[name], whole.micro[name][:n], name)
        np.testing.assert_array_equal(part.histories(np.arange(n))[0], whole.histories(np.arange(n))[0])


def test_leaky_features_do_see_later_offers():
    log = LOGS[3]
    causal = extract(log, SampleOptions())
    leaky = extract(log, SampleOptions(features=FeatureOptions(offers="same_day_full")))
    blind = extract(log, SampleOptions(features=FeatureOptions(offers="none")))
    for other in (leaky, blind):
        assert (other.macro["x_temporal"][..., :6] == causal.macro["x_temporal"][..., :6]).all()
        assert (other.macro["x_temporal"][..., 6:] != causal.macro["x_temporal"][..., 6:]).any()
        np.testing.assert_array_equal(other.macro["label"], causal.macro["label"])
    # on the first morning nothing was offered yet
    assert (causal.macro["x_temporal"][0] == blind.macro["x_temporal"][0]).all()
    assert (leaky.macro["x_temporal"][0] != blind.macro["x_temporal"][0]).any()


@pytest.mark.parametrize("log", LOGS, ids=IDS)
def test_weights_of_the_teacher_call_by_call(log):
    samples = with_goals(extract(log, SampleOptions()), extract(log, SampleOptions()).macro["label"])
    for call in range(samples.rows("calls")):
        rows = np.flatnonzero(samples.micro["call"] == call)
        alpha = HeuristicL4Coordinator().weights(samples.micro["thread_day"][rows], samples.micro["thread"][rows, 0])
        np.testing.assert_allclose(samples.micro["alpha"][rows], alpha, rtol=1e-6)
        assert rows[0] == samples.calls["first"][call]
    together = global_features(samples)
    assert together.shape == (samples.rows("calls"), 30)
    np.testing.assert_array_equal(together[:, :16], samples.macro["goal"][samples.calls["macro"]])
    buying = np.bincount(samples.micro["call"], samples.micro["role"] == 0, samples.rows("calls"))
    np.testing.assert_allclose(together[:, 28], buying / 10)
    np.testing.assert_allclose(together[:, 28:].sum(1) * 10, samples.calls["threads"], rtol=1e-6)
