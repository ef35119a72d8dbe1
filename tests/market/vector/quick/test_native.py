"""Rule W in C answers what the arrays answer, decision for decision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from marlab.market.rules import rule_w
from marlab.market.rules.bargain import RuleOptions
from marlab.market.rules.habits import OWN
from marlab.market.vector.builtin import Seated, random_moves
from marlab.market.vector.generate import generate
from marlab.market.vector.market import Market
from marlab.market.vector.memory import Memory
from marlab.market.vector.quick.native import native, option_values
from marlab.market.vector.rounds import HALVES, OFFER, Moves
from marlab.market.vector.rule_w import RuleW
from marlab.market.vector.seats import Rows
from marlab.market.vector.setup import make_setup

OPTIONS = (
    RuleOptions(),
    RuleOptions(wait=False),
    RuleOptions(price="lowest"),
    RuleOptions(price="highest"),
    RuleOptions(lot=1),
    RuleOptions(opening_days=1, opening_lots=(6, 2), fill_first=False, loss=0.1, hold=5),
)


class Twice:
    """Plays the answers of arrays, and counts where those of C differ."""

    differ = total = 0

    def answer(self, market: Market, rows: Rows) -> tuple[Moves, Any]:
        rule: Any = self
        code, rule._native = rule._native, None
        plain, places = super().answer(market, rows)  # type: ignore[misc]
        rule._native = code
        quick, others = super().answer(market, rows)  # type: ignore[misc]
        order, other = places.argsort(), others.argsort()
        assert torch.equal(places[order], others[other])
        a, b = (torch.stack(moves)[:, at] for moves, at in ((plain, order), (quick, other)))
        differs = (a[0] != b[0]) | ((a[0] == OFFER) & (a[1:] != b[1:]).any(0))
        self.differ, self.total = self.differ + int(differs.sum()), self.total + len(places)
        return plain, places


class Rule(Twice, RuleW):
    """With one set of options."""


class Learner(Rule):
    """Sells by itself, as learners do."""

    sales = 0

    def sale(self, market: Market, rows: Rows, state: Any, caps: Any, threads: Any, issue: Any, alpha: Any) -> Any:
        self.sales += 1
        wishes, worth = self.wished(state, caps, threads, issue, alpha)
        right, exact = rule_w.sell(state, caps, threads, issue, alpha, self.options)
        for name in ("order", "op", "quantity", "price", "choice", "held"):
            assert torch.equal(getattr(wishes, name), getattr(right, name)), name
        assert torch.allclose(worth[threads.there], exact[threads.there], rtol=1e-12, equal_nan=True)
        return super().sale(market, rows, state, caps, threads, issue, alpha)


def market_of(worlds: int, dtype: torch.dtype = torch.float64) -> Market:
    drawn = generate(worlds, np.random.default_rng(0), levels=(2, 4), factories=(3, 5), days=(20, 20))
    market = Market(make_setup(drawn, dtype))
    if native(market, dtype) is None:
        pytest.skip("there is no C compiler")
    return market


def play(market: Market, rule: Any, days: int) -> None:
    seated = Seated(market, torch.ones_like(market.setup.lines), {1: rule}, None)
    for _ in range(days):
        market.open_day()
        seated.open(market)
        for _ in range(HALVES):
            market.move(seated(market))
        seated.close(market)
        market.close_day()


def test_c_answers_as_the_arrays() -> None:
    rule = Rule(market := market_of(5), quick=True)
    play(market, rule, 3)
    assert rule.total > 3000
    assert rule.differ == 0


def test_options_by_seat() -> None:
    market = market_of(4)
    seats = market.setup.lines.shape
    number = torch.arange(market.setup.lines.numel()).view(seats) % len(OPTIONS)
    rule = Rule(market, quick=True)
    rule.vary(OPTIONS, number)
    play(market, rule, 3)
    assert rule.total > 2000
    assert rule.differ == 0


def test_learners_sell_by_themselves() -> None:
    learner = Learner(market := market_of(3), quick=True)
    play(market, learner, 2)
    assert learner.sales > HALVES
    assert learner.differ == 0


def test_options_are_told_in_numbers() -> None:
    values = option_values(RuleOptions(opening_lots=(6, 2), opening_prices=(0.5,), wait=False, price="highest"))
    assert len(values) == 30 + len(OWN)
    assert values[3] == 0  # without waiting nothing is held back
    assert values[7] == 1
    assert values[9:13] == [2, 6, 2, 2]
    assert values[20:22] == [0.5, 0.5]


@pytest.mark.long
def test_c_answers_as_the_arrays_for_a_whole_game() -> None:
    for dtype, allowed in ((torch.float64, 0), (torch.float32, 1e-5)):
        rule = Rule(market := market_of(24, dtype), quick=True)
        play(market, rule, 19)
        assert rule.total > 100_000
        assert rule.differ <= allowed * rule.total  # single precision rounds sums in another order


def test_offers_are_noted_as_by_arrays() -> None:
    market, draw = market_of(4), torch.Generator().manual_seed(0)
    plain, quick = Memory(market, torch.float64), Memory(market, torch.float64, code=native(market, torch.float64))
    there = market.setup.exists
    for _ in range(2):
        market.open_day()
        for memory in (plain, quick):
            memory.open(market)
        for _ in range(HALVES):
            for memory in (plain, quick):
                memory.hear(market)
            assert torch.equal(plain.latest[there], quick.latest[there])
            sums = (memory.sums.view(*there.shape, -1)[there] for memory in (plain, quick))
            assert torch.allclose(*sums, rtol=1e-12, atol=1e-12)
            market.move(random_moves(market, draw))
        for memory in (plain, quick):
            memory.close(market)
        market.close_day()
