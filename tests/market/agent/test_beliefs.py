"""Beliefs in play: what is told of an answer, and what becomes of it."""

from __future__ import annotations

from marlab.market.agent.beliefs import answers_of, last_answer
from marlab.market.agent.threads import Thread
from marlab.market.logs.worldlog import ACCEPT, END
from tests.market.days import a_day


def test_an_answer_is_told_with_what_came_before_it() -> None:
    state = a_day(input_product=0, output_product=1, n_products=3, day=2)  # sells to the last level, which calls
    low, high = float(state.sell_price_min), float(state.sell_price_max)
    thread = Thread("buyer", True, [(5, low, 1, False), (3, high, 0, True), (4, high, 1, False)])
    first, second = answers_of(thread, state)
    assert first == (0, 0, 0, 0, 0, 0, 0, 1, 5, 0, 1) and second == (1, 3, 1, 0, 5, 0, 1, 1, 4, 1, 1)
    thread.proposed = (2, 2, int(low))
    assert last_answer(thread, 2, state) == [(2, 2, 0, 0, 4, 1, 1, ACCEPT, 0, 0, 0)]
    assert last_answer(thread, 0, state) == [(2, 2, 0, 0, 4, 1, 1, END, 0, 0, 0)]
    assert last_answer(Thread("buyer", True), 0, state) == [(0, 0, 0, 0, 0, 0, 0, END, 0, 0, 0)]
    assert last_answer(Thread("seller", False), 0, a_day(n_products=3)) == []  # I should have opened
