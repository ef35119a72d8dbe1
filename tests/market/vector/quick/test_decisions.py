"""Rule W by few large functions: they answer what the policy answers step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from marlab.market.vector import rule_w
from marlab.market.vector.builtin import Seated
from marlab.market.vector.generate import generate
from marlab.market.vector.market import Market
from marlab.market.vector.quick import decisions
from marlab.market.vector.rounds import HALVES, OFFER, Moves
from marlab.market.vector.rule_w import RuleW
from marlab.market.vector.seats import Rows
from marlab.market.vector.setup import make_setup


class Both(RuleW):
    """Plays the answers that are found step by step, and counts where the others differ."""

    differ = total = 0

    def answer(self, market: Market, rows: Rows) -> tuple[Moves, Any]:
        self.compiled = False
        plain, places = super().answer(market, rows)
        self.compiled = True
        quick, others = super().answer(market, rows)
        assert torch.equal(places, others)
        terms = [getattr(plain, name) != getattr(quick, name) for name in ("units", "price", "ahead")]
        differs = (plain.op != quick.op) | ((plain.op == OFFER) & torch.stack(terms).any(0))
        self.differ, self.total = self.differ + int(differs.sum()), self.total + len(places)
        return plain, places


def differing(worlds: int, days: int) -> tuple[int, int]:
    """How many answers differ, of how many, in worlds of all shapes."""
    drawn = generate(worlds, np.random.default_rng(0), levels=(2, 4), factories=(3, 5), days=(20, 20))
    market = Market(make_setup(drawn, torch.float64))
    rule = Both(market)
    seated = Seated(market, torch.ones_like(market.setup.lines), {1: rule}, None)
    for _ in range(days):
        market.open_day()
        seated.open(market)
        for _ in range(HALVES):
            market.move(seated(market))
        seated.close(market)
        market.close_day()
    return rule.differ, rule.total


def test_large_functions_answer_as_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = decisions.Compiled(decisions.weights, decisions.purchase, decisions.chances, decisions.sale)
    monkeypatch.setattr(rule_w, "compiled", lambda: plain)
    differ, total = differing(6, 4)
    assert total > 5000
    assert differ == 0


@pytest.mark.long
def test_traced_functions_answer_as_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_w, "compiled", lambda: decisions.compiled("eager"))
    differ, total = differing(6, 3)
    assert total > 5000
    assert differ == 0
