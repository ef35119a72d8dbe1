"""What a belief about partners adds to the inputs of a learner around the rule.

In each selling thread: how likely every type is, and, as means over the types, the chances that the partner would take
the rule's own lot and that it would leave instead. The same for numpy (play) and torch (the vector market).
"""

from __future__ import annotations

from typing import Any

from marlab.market.rules import beliefs
from marlab.market.rules.around import Sale
from marlab.market.rules.arrays import namespace
from marlab.market.rules.beliefs import Answers, Observer
from marlab.market.rules.l1 import Action
from marlab.market.rules.plan import TODAY

Array = Any
"""Of numpy or torch."""
FORESEEN = 2
"""Numbers beside the types' probabilities: taken, left."""


def outlook_size(observer: Observer | None) -> int:
    """Inputs of a thread."""
    return 0 if observer is None else observer.size + FORESEEN


def outlook(observer: Observer, belief: Array, sale: Sale) -> Array:
    """[N, K, types + 2] from log-probabilities [N, K, types]; 0 where there is no thread."""
    xp = namespace(sale.alpha)
    flat = belief.reshape(-1, observer.size)
    foreseen = beliefs.answering(observer, flat, _if_offered(sale)).reshape(*belief.shape[:-1], FORESEEN)
    there = xp.floats(sale.threads.there, sale.alpha)[..., None]
    return xp.cat([xp.exp(belief), foreseen]) * there


def _if_offered(sale: Sale) -> Answers:
    """The rule's lots as offers that the partners answer, flat [N * K]."""
    xp, state, threads, wishes = namespace(sale.alpha), sale.state, sale.threads, sale.wishes
    zero = sale.alpha * 0
    low = sale.issue.price_min[..., None]
    span = xp.maximum(1.0, sale.issue.price_max[..., None] - low)

    def flat(values: Array) -> Array:
        return (values + zero).reshape(-1)

    seller = state.input_product  # the level of the factory itself
    calls = (state.n_products - 3 - seller) % 2 == 0  # the last level calls, then every second one upstream
    edge = state.output_product == state.n_products - 2
    heard = ~xp.isnan(threads.received.quantity)
    before = (threads.received.quantity, (threads.received.price - low) / span, threads.received.day)
    # a choice of the nearest, next or fullest day is often tomorrow
    mine = (
        wishes.quantity,
        xp.clip((wishes.price - low) / span, 0, 1),
        xp.where(wishes.choice == TODAY, zero, zero + 1),
    )
    rounds = threads.round + xp.floats(calls, zero)[..., None]
    return Answers(
        selling=flat(zero + 1) > 0, calls=flat(xp.floats(calls, zero)[..., None]) > 0,
        edge=flat(xp.floats(edge, zero)[..., None]) > 0, day=flat(state.day[..., None]),
        n_steps=flat(state.n_steps[..., None]), round=flat(rounds), mine=Action(*map(flat, mine)),
        before=Action(*(flat(xp.where(heard, part, 0.0)) for part in before)), op=flat(zero),
        offer=Action(*(flat(zero),) * 3),
    )  # fmt: skip
