"""For tests of plans: random threads on random days."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from marlab.market.agent.threads import Morning, Situation, Thread
from marlab.market.logs.daystate import DayState
from marlab.market.rules import features, l1
from marlab.market.rules.features import FeatureOptions
from marlab.market.rules.goals import economic_goal
from marlab.market.rules.l1 import L1Options
from marlab.market.rules.offers import OfferBook
from marlab.market.rules.partners import PartnerBook
from tests.market.days import random_days

RULES = {"guide": L1Options(), "economic": L1Options(rules="economic", short_reserve=True)}


def some_threads(state: DayState, count: int, rng: np.random.Generator) -> list[Thread]:
    """Threads on the sides that the factory trades on, most with an offer of the partner inside the issue."""
    threads = []
    for k in range(count):
        selling = bool(state.can_sell) and (not state.can_buy or bool(rng.integers(2)))
        issue = l1.issue_of(state, selling)
        round = int(rng.integers(0, 20))
        thread = Thread(f"p{k:02d}", selling, round=round, relative_time=(round + 1) / 21)
        if rng.random() < 0.8:
            offer = tuple(
                int(rng.integers(int(low), int(high) + 1))
                for low, high in (
                    (issue.quantity_min, issue.quantity_max),
                    (issue.first + state.day, issue.last + state.day),
                    (issue.price_min, issue.price_max),
                )
            )
            thread.received = offer[0], offer[1], offer[2]
            thread.history.append((offer[0], offer[2], offer[1] - float(state.day), False))
        threads.append(thread)
    return threads


def situation(state: DayState, threads: list[Thread], options: L1Options, book: PartnerBook | None = None) -> Situation:
    caps = l1.caps(state, options)
    choice = FeatureOptions(horizon=state.horizon)
    morning = Morning(state, economic_goal(state, caps), features.static_features(state, choice))
    return Situation(morning, state, caps, threads, OfferBook(), book or PartnerBook(), options, choice)


def open_days(count: int, seed: int) -> Iterator[tuple[DayState, np.random.Generator]]:
    """Days before the last on which the factory trades at all."""
    days = random_days(count, seed)
    for i in range(count):
        yield days.take(i), np.random.default_rng((seed, i))
