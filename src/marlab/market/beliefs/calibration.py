"""How good beliefs are: played again over recorded worlds that taught the observer nothing.

Log-likelihoods are summed by day once (`day_evidence`); beliefs for any options follow without another replay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from marlab.lab.report.figures import Reliability, reliability_bins
from marlab.market.beliefs.watch import NOBODY, TOGETHER, UNKNOWN, kinds, partner_types, watched
from marlab.market.rules import beliefs
from marlab.market.rules.beliefs import BeliefOptions, Observer
from marlab.market.vector.beliefs import Beliefs, Watch
from marlab.market.vector.market import Market
from marlab.market.vector.replay import Recorded
from marlab.market.vector.rounds import Moves

TEMPERS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
CARRIES = (1.0, 0.98, 0.95, 0.9)
FLOORS = (0.0005, 0.002, 0.005)
STRANGE = (0.0, 0.1, 0.2, 0.3, 0.4, 0.6)
STRANGERS = 0.25
"""Weight of strangers beside known types where options are chosen."""
MODELS = ("the stranger", "no belief: all types alike", "belief", "the true type")
"""Who foresees answers."""
NEVER = 50.0
"""Evidence of a day that rules a type out."""
SHOWN_DAYS = (1, 2, 5, 10, 20, 40)
"""Mornings for tables: after so many days of talking."""


@dataclass(frozen=True)
class Evidence:
    """What pairs said to each other, by day: X pairs of a watcher and a partner, T days."""

    days: Tensor  # [X, T, Y] summed log-likelihoods
    answers: Tensor  # [X, T] how many
    type: Tensor  # [X] the partner's type; UNKNOWN: none of them
    agent: list[str]  # [X] the partner's name
    world: Tensor  # [X]


class _DayWitness:
    """Keeps what each day said, without the bonus of the stranger."""

    def __init__(self, market: Market, observer: Observer) -> None:
        self._watch = Watch(market)
        self._observer = observer._replace(options=replace(observer.options, stranger=0.0)).like(market.balance)
        self.days: list[Tensor] = []  # [2, B, P, C, R, Y]
        self.answers: list[Tensor] = []  # [2, B, P, C, R]

    def open(self, market: Market) -> None:
        self._watch.open(market)
        shape = (2, *market.threads.units.shape)
        self.days.append(torch.zeros((*shape, self._observer.size)))
        self.answers.append(torch.zeros(shape))

    def before(self, market: Market, moves: Moves, silent: Tensor) -> None:
        self.close(market)

    def close(self, market: Market) -> None:
        seen = self._watch.heard(market)
        if seen is not None:
            found = beliefs.log_likelihoods(self._observer, seen.answers)
            self.days[-1][seen.watcher].view(-1, self._observer.size)[seen.places] += found
            self.answers[-1][seen.watcher].view(-1)[seen.places] += 1


def day_evidence(
    worlds: Sequence[Recorded], observer: Observer, tick: Callable[[int], None] = lambda n: None
) -> Evidence:
    """What every partner said on every day, as the observer hears it."""
    parts = []
    for begin in range(0, len(worlds), TOGETHER):
        some = worlds[begin : begin + TOGETHER]
        names = sorted({agent for world in some for agent in world.agents})
        named = partner_types(kinds(some, names))  # [2, B, P, C, R]
        seen = watched(some, lambda market: _DayWitness(market, observer))
        at = (named != NOBODY).nonzero(as_tuple=True)
        days, answers = (torch.stack([day[at] for day in found], 1) for found in (seen.days, seen.answers))
        agents = [names[number] for number in named[at].tolist()]
        types = {name: number for number, name in enumerate(observer.types)}
        numbers = torch.tensor([types.get(agent, UNKNOWN) for agent in agents])
        parts.append(Evidence(days, answers, numbers, agents, at[1] + begin))
        tick(len(some))
    longest = max(part.days.shape[1] for part in parts)
    more = [longest - part.days.shape[1] for part in parts]
    return Evidence(
        torch.cat([pad(part.days, (0, 0, 0, extra)) for part, extra in zip(parts, more)]),
        torch.cat([pad(part.answers, (0, extra)) for part, extra in zip(parts, more)]),
        torch.cat([part.type for part in parts]),
        [agent for part in parts for agent in part.agent],
        torch.cat([part.world for part in parts]),
    )


def mornings(evidence: Evidence, observer: Observer, options: BeliefOptions) -> Tensor:
    """[X, T + 1, Y] probabilities on every morning, from before anything was heard until after the last day."""
    belief: Tensor = beliefs.prior((len(evidence.type),), observer, evidence.days)
    found = [belief]
    days = evidence.days.clone()
    days[..., -1] += options.stranger * evidence.answers
    for day in days.unbind(1):
        belief = beliefs.next_day(beliefs.posterior(belief, day, options), options)
        found.append(belief)
    return torch.stack(found, 1).exp()


def log_loss(probabilities: Tensor, evidence: Evidence) -> float:
    """Mean over known types and days of minus the log of the true type's probability; every type counts the same."""
    known = evidence.type >= 0
    types = evidence.type[known]
    own = probabilities[known].gather(-1, types[:, None, None].expand(-1, probabilities.shape[1], 1))[..., 0]
    each = -own[:, 1:].clamp(min=1e-9).log().mean(1)
    return float(np.mean([float(each[types == number].mean()) for number in types.unique()]))


def without_own_type(evidence: Evidence) -> Evidence:
    """The same partners as strangers: nothing ever speaks for what they are."""
    known = evidence.type >= 0
    days, types = evidence.days[known].clone(), evidence.type[known]
    own = types[:, None, None].expand(-1, days.shape[1], 1)
    days.scatter_(-1, own, days.min(-1, keepdim=True).values - NEVER)
    agents = [agent for agent, there in zip(evidence.agent, known.tolist()) if there]
    return Evidence(days, evidence.answers[known], types, agents, evidence.world[known])


def stranger_loss(probabilities: Tensor, evidence: Evidence) -> float:
    """Mean over types and days of minus the log of the stranger's probability; every type counts the same."""
    each = -probabilities[:, 1:, -1].clamp(min=1e-9).log().mean(1)
    return float(np.mean([float(each[evidence.type == number].mean()) for number in evidence.type.unique()]))


def tune(evidence: Evidence, observer: Observer) -> Observer:
    """The observer with the options that foresee types best, and strangers: agents whose own type is taken away."""
    strange = without_own_type(evidence)

    def loss(options: BeliefOptions) -> float:
        known = log_loss(mornings(evidence, observer, options), evidence)
        return known + STRANGERS * stranger_loss(mornings(strange, observer, options), strange)

    best = observer.options
    for _ in range(2):  # one option after the other, twice: the loss is smooth
        for name, values in (("temper", TEMPERS), ("stranger", STRANGE), ("carry", CARRIES), ("floor", FLOORS)):
            best = min((replace(best, **{name: value}) for value in values), key=loss)
    return observer._replace(options=best)


class _Foresight:
    """Sums of -log p of what partners did with offers (take, counter, leave), under several models."""

    def __init__(self, market: Market, observer: Observer, partner: Tensor) -> None:
        self._beliefs, self._partner = Beliefs(market, observer), partner.flatten(1)
        self.sums, self.count = torch.zeros(len(MODELS), dtype=torch.float64), 0

    def open(self, market: Market) -> None:
        self._beliefs.open(market)

    def before(self, market: Market, moves: Moves, silent: Tensor) -> None:
        self.close(market)

    def close(self, market: Market) -> None:
        known, observer = self._beliefs, self._beliefs.observer
        seen = known.watch.heard(market)
        if seen is None:
            return
        answers: Any = seen.answers
        ops: Tensor = beliefs.log_shares(beliefs.logits(observer, beliefs.contexts(answers))[..., : len(beliefs.OPS)])
        chosen = beliefs.classes(answers)[0]
        found: Tensor = ops.gather(-1, chosen[:, None, None].expand(-1, observer.size, 1))[..., 0]  # [M, Y]
        own = self._partner[seen.watcher, seen.places]
        morning, evidence = (part[seen.watcher].view(-1, observer.size) for part in (known.morning, known.evidence))
        belief: Tensor = beliefs.posterior(morning[seen.places], evidence[seen.places], observer.options)
        rows = (own >= 0) & (answers.mine.quantity > 0)
        each = torch.stack([
            found[:, -1], torch.logsumexp(found - math.log(observer.size), 1), torch.logsumexp(found + belief, 1),
            found.gather(1, own.clamp(min=0)[:, None])[:, 0],
        ])  # fmt: skip
        self.sums -= each[:, rows].double().sum(1)
        self.count += int(rows.sum())
        evidence[seen.places] += beliefs.log_likelihoods(observer, answers)


def foresight(worlds: Sequence[Recorded], observer: Observer) -> dict[str, float]:
    """How well partners' answers to offers are foreseen: mean -log p of taking, countering or leaving, by model."""
    sums, count = torch.zeros(len(MODELS), dtype=torch.float64), 0
    for begin in range(0, len(worlds), TOGETHER):
        some = worlds[begin : begin + TOGETHER]
        partner = partner_types(kinds(some, observer.types))
        seen = watched(some, lambda market: _Foresight(market, observer, partner))  # noqa: B023
        sums, count = sums + seen.sums, count + seen.count
    return dict(zip(MODELS, (sums / max(1, count)).tolist()))


@dataclass(frozen=True)
class Quality:
    """How good the beliefs are."""

    types: tuple[str, ...]
    by_day: dict[int, tuple[float, float, float]]  # day -> probability of the true type, share of hits, log loss
    by_type: dict[str, list[float]]  # type -> probability of the true type on every morning
    strangers: dict[str, list[float]]  # agent without a type -> probability of the stranger on every morning
    strange: dict[str, list[float]]  # agent of a type -> the same
    mistaken: dict[str, dict[str, float]]  # type -> mean probabilities at the end, of all types
    reliability: Reliability  # of the likeliest type, over all days
    foresight: dict[str, float] = field(default_factory=dict)  # model -> mean -log p of answers to offers


def quality(evidence: Evidence, observer: Observer) -> Quality:
    """Tables of beliefs with the observer's own options."""
    found = mornings(evidence, observer, observer.options)
    known = evidence.type >= 0
    types, shares = evidence.type[known], found[known]
    own = shares.gather(-1, types[:, None, None].expand(-1, shares.shape[1], 1))[..., 0]
    best, guess = shares.max(-1)
    hits = (guess == types[:, None]).float()
    days = [day for day in SHOWN_DAYS if day < shares.shape[1]]
    by_day = {
        day: (float(own[:, day].mean()), float(hits[:, day].mean()), float(-own[:, day].clamp(min=1e-9).log().mean()))
        for day in days
    }
    names = (*observer.types, beliefs.STRANGER)
    by_type, strange, mistaken = {}, {}, {}
    for number, name in enumerate(observer.types):
        mine = types == number
        if mine.any():
            by_type[name] = own[mine].mean(0).tolist()
            strange[name] = shares[mine][..., -1].mean(0).tolist()
            mistaken[name] = dict(zip(names, shares[mine][:, -1].mean(0).tolist()))
    agents = np.array(evidence.agent)
    strangers = {}
    for name in sorted(set(agents[(~known).numpy()].tolist())):
        mine = torch.as_tensor(agents == name)
        strangers[name] = found[mine][..., -1].mean(0).tolist()
        mistaken[name] = dict(zip(names, found[mine][:, -1].mean(0).tolist()))
    confidence, correct = best[:, 1:].flatten().numpy(), hits[:, 1:].flatten().numpy()
    bins = reliability_bins(confidence, correct, 10)
    return Quality(observer.types, by_day, by_type, strangers, strange, mistaken, bins)
