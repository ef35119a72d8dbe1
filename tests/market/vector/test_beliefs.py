"""Watching partners in the vector market: what was answered, by whom, before what; and who is remembered."""

from __future__ import annotations

import numpy as np
import torch

from marlab.market.rules import beliefs as rules
from marlab.market.vector.beliefs import Beliefs, Seen, Watch
from marlab.market.vector.generate import generate
from marlab.market.vector.market import Market
from marlab.market.vector.rounds import ACCEPT, END, HALVES, OFFER, Moves
from marlab.market.vector.seats import CONSUMERS, Seats
from marlab.market.vector.setup import make_setup
from tests.market.beliefs_cases import telling_observer


def a_market(worlds: int = 1, days: int = 3) -> Market:
    """Two levels of three factories; the last level buys and calls."""
    drawn = generate(worlds, np.random.default_rng(0), levels=(2, 2), factories=(3, 3), days=(days, days))
    return Market(make_setup(drawn))


def same(market: Market, op: int, units: int = 4, ahead: int = 1) -> Moves:
    """Everybody does the same, at the highest price."""
    full = torch.full_like(market.threads.units, 0)
    return Moves(full + op, full + units, full + market.ranges.price_high, full + ahead)


def seen_by(market: Market, moves: list[Moves], watch: Watch) -> list[Seen | None]:
    market.open_day()
    watch.open(market)
    found = []
    for each in moves:
        found.append(watch.heard(market))
        market.move(each)
    return [*found, watch.heard(market)]


def test_offers_are_seen_with_what_came_before_them() -> None:
    market = a_market()
    moves = [same(market, OFFER, 4), same(market, OFFER, 2, 0), same(market, OFFER, 7), same(market, ACCEPT)]
    nothing, first, second, third, last = seen_by(market, moves, Watch(market))
    assert nothing is None and first is not None and second is not None and third is not None and last is not None
    assert (first.watcher, second.watcher, third.watcher, last.watcher) == (1, 0, 1, 0)
    assert len(first.places) == 9 and bool(first.answers.selling.all()) and bool(first.answers.calls.all())
    assert not second.answers.selling.any() and not second.answers.calls.any()
    assert first.answers.mine.quantity.unique().tolist() == [0] and first.answers.offer.quantity.unique().tolist() == [
        4
    ]
    assert third.answers.round.unique().tolist() == [1] and third.answers.op.unique().tolist() == [OFFER]
    for part, units in ((third.answers.mine, 2), (third.answers.before, 4), (third.answers.offer, 7)):
        assert part.quantity.unique().tolist() == [units] and part.price.unique().tolist() == [1]
    assert last.answers.op.unique().tolist() == [ACCEPT] and last.answers.mine.quantity.unique().tolist() == [7]
    assert last.answers.offer.quantity.unique().tolist() == [0]


def test_leaving_is_seen_but_running_out_of_time_is_not() -> None:
    market = a_market()
    assert seen_by(market, [same(market, END)], Watch(market))[1].answers.op.unique().tolist() == [END]  # type: ignore[union-attr]
    market.half = HALVES
    market.close_day()
    found = seen_by(market, [same(market, OFFER) for _ in range(HALVES)], Watch(market))
    assert sum(seen is not None for seen in found) == HALVES - 2


def test_only_the_watchers_watch() -> None:
    market = a_market()
    mine = torch.zeros_like(market.setup.exists)
    mine[:, 0, 1] = True  # one seller
    moves = [same(market, OFFER), same(market, OFFER), same(market, OFFER)]
    _, first, second, third = seen_by(market, moves, Watch(market, mine))
    assert first is not None and third is not None and second is None
    rows = Seats(market).rows(mine)
    assert sorted(first.places.tolist()) == sorted(rows.threads[0, CONSUMERS].tolist())
    market.close_day()
    _, first, second, _ = seen_by(market, moves, Watch(market, selling=True))
    assert first is not None and second is None


def test_posteriors_follow_bayes_over_days_and_begin_anew_with_a_world() -> None:
    market = a_market()
    observer = telling_observer((0.8, 0.2, 0.5))._replace(options=rules.BeliefOptions(1.0, 1.0, 0.0, 0.0))
    known = Beliefs(market, observer)
    selling = market.setup.exists.clone()
    selling[:, 1] = False
    sellers = Seats(market).rows(selling)
    for day in range(2):
        market.open_day()
        known.open(market)
        known.hear(market)
        market.move(same(market, OFFER))
        known.hear(market)
        market.move(same(market, OFFER))
        known.hear(market)
        market.move(same(market, ACCEPT))
        market.half = 3  # the sellers would move
        known.hear(market)
        shares = known.of(market, sellers, CONSUMERS).exp()
        weight = torch.tensor([0.2 * 0.8, 0.8 * 0.2, 0.25]) ** (day + 1)
        torch.testing.assert_close(shares, (weight / weight.sum()).expand_as(shares))
        market.half = HALVES
        known.close(market)
        market.close_day()
    market.restart(torch.ones(1, dtype=torch.bool), market.setup)
    market.open_day()
    known.open(market)
    torch.testing.assert_close(known.morning.exp(), torch.full_like(known.morning, 1 / 3))


def test_beliefs_go_on_from_a_kept_state() -> None:
    market = a_market()
    known, again = (Beliefs(market, telling_observer((0.8, 0.2, 0.5))) for _ in range(2))
    market.open_day()
    known.open(market)
    market.move(same(market, OFFER))
    known.hear(market)
    again.set_state(known.get_state())
    assert torch.equal(again.evidence, known.evidence) and bool((known.evidence != 0).any())
