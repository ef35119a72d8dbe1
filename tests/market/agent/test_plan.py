"""Plans over sets of threads: within L1 whatever the wishes are, and a function of the set."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from marlab.market.agent.decide import (
    Intentions,
    RuleW,
    by_decision,
    heuristic,
    pure_l1,
)
from marlab.market.agent.neural import Neural, NeuralWeights
from marlab.market.agent.plan import RoundPlan, make_plan
from marlab.market.agent.threads import Situation, Thread
from marlab.market.logs.daystate import Array
from marlab.market.logs.worldlog import ACCEPT, END, REJECT
from marlab.market.networks.coordinator import GlobalCoordinator
from marlab.market.networks.executor import TemporalDecisionTransformer
from marlab.market.rules import l1
from marlab.market.rules.executor import Decision
from marlab.market.rules.l1 import L1Options
from marlab.market.rules.partners import Ended, PartnerBook
from marlab.market.rules.plan import by_weight
from marlab.market.rules.round_state import heuristic_weights, uniform_weights
from tests.market.days import a_day, random_days
from tests.market.network_cases import numpy_l3, numpy_l4
from tests.market.thread_cases import RULES, open_days, situation, some_threads


def a_book(rng: np.random.Generator, count: int) -> PartnerBook:
    book = PartnerBook()
    for k in range(count):
        for selling in (False, True):
            for _ in range(4):
                lot, rounds = int(rng.integers(0, 9)), int(rng.integers(0, 20))
                book.add(Ended(0, f"p{k:02d}", selling, rounds, lot, int(rng.integers(9, 12)), 9, 11))
    return book


class Wild:
    """Wishes without any sense."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def __call__(self, at: Situation, alpha: Array) -> Intentions:
        k, rng = len(at.threads), self.rng
        decision = Decision(
            rng.integers(0, 3, k), rng.normal(0, 200, k), rng.normal(0, 50, k), rng.integers(-5, 60, k) * 1.0
        )
        return by_decision(at, alpha, decision)


def check_plan(at: Situation, plan: RoundPlan, options: L1Options) -> int:
    """Every promise of a plan, recomputed without its ledger; returns how many offers and acceptances it has."""
    day = int(at.state.day)
    spent, bought, sold = 0.0, np.zeros_like(at.state.q_in), np.zeros_like(at.state.q_in)
    for i, thread in enumerate(at.threads):
        answer = plan.answers[thread.partner]
        assert (answer.offer is None) == (answer.op == END)
        if answer.offer is None:
            continue
        assert answer.op == REJECT or (answer.op == ACCEPT and answer.offer == thread.received)
        quantity, when, price = answer.offer
        assert all(type(part) is int for part in answer.offer)
        issue = l1.Issue(*(bound[i] for bound in at.issue))
        assert max(1, issue.quantity_min) <= quantity <= issue.quantity_max
        assert issue.price_min <= price <= issue.price_max and issue.first <= when - day <= issue.last
        if thread.selling:
            sold[when - day] += quantity
        else:
            bought[when - day] += quantity
            spent += quantity * price
    assert plan.unsafe == 0 and spent <= at.caps.budget + 1e-6
    if options.rules == "economic":
        assert (bought <= at.caps.buy + 1e-6).all() and bought.sum() <= at.caps.buy.max() + 1e-6
        assert (sold <= at.caps.sell + 1e-6).all()
    else:  # sales up to a day must leave what later days still owe; purchases must be processed in time
        ahead = np.cumsum(sold)
        assert (ahead[sold > 0] <= at.caps.sell[sold > 0] + 1e-6).all()
        late = np.cumsum(bought[::-1])[::-1]
        assert (late[bought > 0] <= at.caps.buy[bought > 0] + 1e-6).all()
    return int((bought > 0).sum() + (sold > 0).sum())


@pytest.mark.parametrize("rules", list(RULES))
def test_whatever_is_wished_a_plan_stays_within_l1(rules: str) -> None:
    options, made = RULES[rules], 0
    network = Neural(numpy_l3(TemporalDecisionTransformer(d_model=16, n_layers=1).eval()), sample=True)
    for state, rng in open_days(60, 1):
        threads = some_threads(state, int(rng.integers(1, 9)), rng)
        at = situation(state, threads, options, a_book(rng, 8))
        for decider in (Wild(rng), pure_l1, heuristic, RuleW(), network):
            alpha = rng.dirichlet(np.ones(len(threads)))
            plan = make_plan(at, decider(at, alpha), alpha)
            made += check_plan(at, plan, options)
    assert made > 200


@pytest.mark.parametrize("rules", list(RULES))
def test_clipped_actions_are_outcomes_within_the_caps(rules: str) -> None:
    count = 10_000
    days = random_days(count, 5)
    rng = np.random.default_rng(6)
    for selling in (False, True):
        caps, issue = l1.caps(days, RULES[rules]), l1.issue_of(days, selling)
        wild = l1.Action(rng.normal(5, 40, count), rng.normal(15, 30, count), rng.integers(-3, 12, count) * 1.0)
        cap = caps.of(selling)
        done = l1.clip_action(wild, cap, caps.budget, selling, issue, l1.time_mask(cap, issue))
        ok = done.valid
        assert ok.sum() > 20
        assert (done.quantity[ok] <= l1.at(cap, done.day)[ok] + 1e-9).all()
        assert selling or (done.quantity[ok] * done.price[ok] <= caps.budget[ok] + 1e-6).all()
        for value, low, high in (
            (done.quantity, issue.quantity_min, issue.quantity_max),
            (done.price, issue.price_min, issue.price_max),
            (done.day, issue.first, issue.last),
        ):
            assert (value[ok] >= low[ok]).all() and (value[ok] <= high[ok]).all()
            assert (value[ok] == np.rint(value[ok])).all()


@pytest.mark.parametrize("rules", list(RULES))
def test_the_plan_is_a_function_of_the_set_of_threads(rules: str) -> None:
    options = RULES[rules]
    weigh_l4 = NeuralWeights(numpy_l4(GlobalCoordinator().eval()))
    l3 = Neural(numpy_l3(TemporalDecisionTransformer(d_model=16, n_layers=1).eval()))
    for state, rng in open_days(12, 3):
        threads = some_threads(state, 6, rng)
        book = a_book(rng, 6)
        plans = []
        for _ in range(3):
            rng.shuffle(threads)  # type: ignore[arg-type]
            at = situation(state, threads, options, book)
            for weigh, decider in ((heuristic_weights, RuleW()), (weigh_l4, l3), (uniform_weights, heuristic)):
                alpha = weigh(at)
                plans.append(make_plan(at, decider(at, alpha), alpha).answers)
        for other in (3, 6):
            assert plans[:3] == plans[other : other + 3]


def sellers(*offers: tuple[int, int, int] | None) -> list[Thread]:
    """Suppliers of the factory of `a_day`, with what they offer."""
    threads = [Thread(f"p{k}", selling=False, round=3, received=offer) for k, offer in enumerate(offers)]
    for thread in threads:
        if thread.received:
            quantity, when, price = thread.received
            thread.history.append((quantity, price, when - 10, False))
    return threads


def test_threads_with_more_weight_are_served_first() -> None:
    state = a_day(balance=1000 + 60, initial_balance=20_000)  # money for six units at 10
    at = situation(state, sellers(None, None, None), L1Options())
    for first in range(3):
        alpha = np.full(3, 0.1)
        alpha[first] = 0.8
        assert by_weight(alpha)[0] == first
        plan = make_plan(at, pure_l1(at, alpha), alpha)
        assert plan.answers[f"p{first}"].op == REJECT
        assert [a.op for a in plan.answers.values()].count(END) == 2
        assert plan.answers[f"p{(first + 1) % 3}"].why in ("no budget", "nothing wanted")


def test_an_acceptance_that_no_longer_fits_becomes_an_offer() -> None:
    state = a_day(balance=1000 + 100, initial_balance=20_000)
    at = situation(state, sellers((7, 10, 10), (7, 10, 10)), L1Options())
    alpha = np.array([0.6, 0.4])
    zero = np.zeros(2)
    wishes = by_decision(at, alpha, Decision(np.array([ACCEPT, ACCEPT]), zero, zero, zero))
    answers = make_plan(at, wishes, alpha).answers
    assert answers["p0"].op == ACCEPT and answers["p0"].offer == (7, 10, 10)
    assert answers["p1"].op == REJECT and answers["p1"].offer == (3, 10, 9)  # 30 of money are left
    assert answers["p1"].why.startswith("acceptance does not fit")


def test_an_offer_that_may_still_be_signed_is_repeated_and_counted() -> None:
    state = a_day(balance=1000 + 100, initial_balance=20_000)
    threads = sellers(None, (7, 10, 10))
    threads[0].proposed = (9, 10, 10)
    at = situation(state, threads, L1Options())
    alpha = np.array([0.1, 0.9])
    answers = make_plan(at, pure_l1(at, alpha), alpha).answers
    assert answers["p0"].offer == (9, 10, 10)
    assert answers["p1"].op == REJECT and answers["p1"].offer == (1, 10, 9)


def test_a_lot_goes_to_a_day_that_holds_it_whole() -> None:
    sold: Any = np.zeros(41)
    sold[2] = 4
    state = a_day(inventory_input=10, q_out=sold)
    options = RULES["economic"]
    threads = [Thread(f"c{k}", selling=True, round=3) for k in range(3)]
    at = situation(state, threads, options)
    assert set(at.base.day) == {3.0} and set(at.base.quantity) == {10.0}
    alpha = np.array([0.5, 0.3, 0.2])
    plan = make_plan(at, pure_l1(at, alpha), alpha)
    offers = [plan.answers[f"c{k}"].offer for k in range(3)]
    assert offers[0] == (10, 13, 22)
    assert {offer[1] for offer in offers if offer} == {10, 11, 13} and all(o and o[0] == 10 for o in offers)
    assert [plan.answers[f"c{k}"].why for k in range(3)] == ["", "", ""]
