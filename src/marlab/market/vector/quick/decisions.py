"""Rule W's decisions as a few compiled functions: for GPUs, where thousands of small operations are slow.

    RuleW(market, compiled=True)

The functions are those of `marlab.market.rules`, unchanged: torch.compile makes one pass over memory of what would be
hundreds. What waiting is worth, which is weighed once for every round that is left, is a kernel of its own
(`quick.worth`) where triton is installed. The first day takes a minute or two, for compiling.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import torch

from marlab.market.rules import bargain, features, l1, plan, records, rule_w
from marlab.market.rules.bargain import Chances, RuleOptions
from marlab.market.rules.executor import HeuristicL4Coordinator
from marlab.market.rules.l1 import Action, L1Options
from marlab.market.rules.offers import ROUNDS, OfferSlots
from marlab.market.rules.records import Records
from marlab.market.vector.books import HORIZON
from marlab.market.vector.seats import CONSUMERS
from marlab.market.vector.views import Table, state_of

Tensor = Any
"""A torch.Tensor. The rules work on numpy arrays and tensors alike; their types name the former."""
RULES = L1Options(rules="economic", short_reserve=True)
_FEATURES = features.FeatureOptions(horizon=HORIZON)


class Talks(NamedTuple):
    """The threads of rows, before they are gathered."""

    there: Tensor  # [N, K] or [N, 2, K]
    place: Tensor  # the same: where the threads are in the tables
    units: Tensor  # flat: the offers on the table
    price: Tensor
    ahead: Tensor
    round: Tensor  # [], the same for all


def _received(talks: Talks, dtype: torch.dtype) -> Action:
    table = [values[talks.place].to(dtype) for values in (talks.units, talks.price, talks.ahead)]
    missing = ~talks.there | (table[0] == 0)
    return Action(*(values.masked_fill(missing, math.nan) for values in table))


def _threads(talks: Talks, known: Records, dtype: torch.dtype) -> plan.Threads:
    received = _received(talks, dtype)
    nothing = torch.full_like(received.quantity, math.nan)
    rounds = torch.zeros_like(received.quantity) + talks.round
    none = nothing[..., None]
    return plan.Threads(
        talks.there, rounds, received, Action(nothing, nothing, nothing), Action(none, none, none), rounds, known
    )  # fmt: skip


def weights(
    table: Table, talks: Talks, sums: Tensor, latest: Tensor, goal: Tensor, fades: float, first: bool
) -> Tensor:
    """L4's weights [N, 2, K]; `sums` [seats, 2, S, 3], `latest` [seats], `goal` [seats, 16]."""
    state, dtype = state_of(table), table.fields.dtype
    there = talks.there.flatten(1)
    selling = torch.arange(2, device=there.device).repeat_interleave(talks.there.shape[2]) == CONSUMERS
    selling = selling.expand(there.shape)
    rounds = torch.zeros(there.shape, dtype=dtype, device=there.device) + talks.round
    base = Action(rounds, rounds, torch.zeros_like(rounds))
    if first:  # later there is an offer on every table, whose day counts
        caps = l1.caps(state, RULES)
        base = l1.baseline(state.per_thread(), caps.per_thread(), selling, RULES, rounds)
    last = Action(*(values.flatten(1) for values in _received(talks, dtype)))
    mine = latest[table.seat]
    faded = torch.where(mine > -math.inf, torch.exp(-fades * mine), 0.0)[:, None, None, None]
    slots = OfferSlots(*(sums[table.seat] * faded).unbind(-1))
    negotiations = features.Negotiations(selling, base, None, None, last, None, (rounds + 1) / (ROUNDS + 1))
    wanted = features.priorities(state, slots, _FEATURES, goal[table.seat], negotiations)
    days = features.latest_day(last.day, base.day, HORIZON)
    alpha: Tensor = HeuristicL4Coordinator().weights(days, wanted, there)
    return alpha.view(talks.there.shape)


def purchase(table: Table, talks: Talks, alpha: Tensor) -> Tensor:
    """Answers to suppliers: operator, units, price and day [4, N, K]."""
    state = state_of(table)
    caps, issue = l1.caps(state, RULES), l1.issue_of(state, False)
    threads = _threads(talks, _NOBODY, table.fields.dtype)
    wishes = rule_w.buy(state, caps, threads, issue, alpha)
    return _moves(plan.plan(state, RULES, False, threads, issue, wishes, explain=False))


def chances(
    table: Table, talks: Talks, known: tuple[Tensor, Tensor], options: RuleOptions
) -> tuple[Tensor, Tensor, Chances]:
    """Room [N, S], cost [N] and chances [N, K] of sales, which is what waiting depends on."""
    state = state_of(table)
    threads = _threads(talks, _records(known), table.fields.dtype)
    caps, issue = l1.caps(state, RULES), l1.issue_of(state, True)
    terms = rule_w.terms_of(state, caps, issue, options, rule_w.held_back(state, options))
    return terms.room, state.production_cost.clone(), bargain.chances(threads, terms, options)


def sale(
    table: Table, talks: Talks, known: tuple[Tensor, Tensor], alpha: Tensor, worth: Tensor, options: RuleOptions
) -> Tensor:
    """Answers to consumers: operator, units, price and day [4, N, K]; `worth` [N, K] of waiting."""
    state = state_of(table)
    threads = _threads(talks, _records(known), table.fields.dtype)
    caps, issue = l1.caps(state, RULES), l1.issue_of(state, True)
    wishes, _ = rule_w.sell(state, caps, threads, issue, alpha, options, worth)
    return _moves(plan.plan(state, RULES, True, threads, issue, wishes, explain=False))


def _moves(answers: plan.Answers) -> Tensor:
    return torch.stack([values.to(torch.int32) for values in answers[:4]])


def _records(known: tuple[Tensor, Tensor]) -> Records:
    """Condensed records of rows: all of them [fields, M, K] and the rows' places [N]."""
    values = known[0][:, known[1]].unbind(0)
    fields = zip(Records._fields, values)
    return Records(*(value[..., None] if name in records.RINGS else value for name, value in fields))


_NOBODY = records.empty((0, 0))


class Compiled(NamedTuple):
    """The functions above, compiled."""

    weights: Callable[..., Tensor]
    purchase: Callable[..., Tensor]
    chances: Callable[..., Any]
    sale: Callable[..., Tensor]


@cache
def compiled(backend: str = "inductor") -> Compiled:
    """Compiled once in a process; every function once for any number of rows."""
    from marlab.market.rules.arrays import namespace

    namespace(torch.zeros(()))  # loads what the compiler reads
    options: dict[str, Any] = {"dynamic": True, "fullgraph": True, "backend": backend}
    return Compiled(*(torch.compile(function, **options) for function in (weights, purchase, chances, sale)))
