"""Beliefs about who a partner is: a posterior over known types, from nothing but what both sides could see.

An observer is one small network that says how likely each type of agent is to give an answer in a public context (the
round, the day, the offer on the table, the partner's offer before it): it does not see the partner's stock or
needs. Bayes' rule does the rest. The last type is the stranger: it answers as agents of all types do, taken together,
so whoever fits none of the types well becomes a stranger.

Letters: M answers, Y types (the stranger is the last one), D numbers of a context.
"""

from __future__ import annotations

import itertools
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from marlab.lab.errors import UserError
from marlab.lab.runs.files import replacing
from marlab.market.logs.worldlog import ACCEPT, END, REJECT
from marlab.market.rules.arrays import namespace
from marlab.market.rules.l1 import Action
from marlab.market.rules.offers import LARGEST_LOT, ROUNDS

Array = Any
"""Of numpy or torch."""
Bools = Any
Ints = Any
KIND = "market/observer"
STRANGER = "stranger"
OPS = (ACCEPT, REJECT, END)
"""What a partner can answer: it takes my offer, makes one of its own, or leaves."""
LOTS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, LARGEST_LOT)
"""Upper ends of the classes of lots."""
PRICES = 5
"""Classes of prices: lowest, three thirds between, highest."""
DAYS = (0, 1, 2, 5, 10)
"""Upper ends of the classes of days to delivery."""
HEADS = (len(OPS), len(LOTS), PRICES, len(DAYS))
ANSWER = sum(HEADS)
"""Logits of one type."""
OFFER = 15
"""Numbers that describe an offer: whether there is one, its size in four ways, price in three, day in four, ..."""
CONTEXT = 13 + 2 * OFFER
UNLIKELY = 6.0
"""No single answer speaks against a type by more than this (in natural logarithms): models are never that good."""


class Answers(NamedTuple):
    """Answers of partners and what was public before them: each [M], offers with positions (0 to 1) as prices.

    An offer that was not made has quantity 0.
    """

    selling: Bools  # I sell, so the partner buys
    calls: Bools  # the partner speaks first
    edge: Bools  # the partner's other side is the market itself: the last level's buyers, the first level's sellers
    day: Array
    n_steps: Array
    round: Array  # earlier offers of the partner in this negotiation
    mine: Action  # my offer that it answers
    before: Action  # its own offer before that
    op: Ints  # one of OPS
    offer: Action  # what it offers


@dataclass(frozen=True)
class BeliefOptions:
    """How answers turn into beliefs; fitted together with the observer."""

    temper: float = 0.5
    """Weight of an answer: 1 would take the answers of a negotiation for independent, and they are not."""
    carry: float = 1.0
    """What is left of a belief on the next morning; the rest is the prior."""
    floor: float = 0.002
    """Least probability of every type."""
    stranger: float = 0.2
    """What every answer speaks for the stranger (in natural logarithms): of many types one always fits a little."""

    def __post_init__(self) -> None:
        for name, low, high in (("temper", 0, 2), ("carry", 0, 1), ("floor", 0, 0.05), ("stranger", 0, 2)):
            if not low <= getattr(self, name) <= high:
                raise UserError(f"beliefs.{name} is {getattr(self, name)}; it must be from {low} to {high}.")


class Observer(NamedTuple):
    """The weights: layers of a network whose last one gives the answers' logits of all types."""

    types: tuple[str, ...]  # without the stranger, who comes last
    weights: tuple[Array, ...]  # [in, out] each
    biases: tuple[Array, ...]  # [out] each
    options: BeliefOptions

    @property
    def size(self) -> int:
        """Y, the stranger included."""
        return len(self.types) + 1

    def like(self, array: Array) -> Observer:
        """The same weights as arrays of the kind, type and place of another one."""
        xp = namespace(array)

        def moved(values: Any) -> Any:
            return xp.floats(xp.asarray(np.asarray(values), array), array)

        return self._replace(weights=tuple(map(moved, self.weights)), biases=tuple(map(moved, self.biases)))


def contexts(answers: Answers) -> Array:
    """[M, D] what was public before each answer."""
    xp, like = namespace(answers.day), answers.day
    left = answers.n_steps - answers.day
    own = xp.stack([
        xp.floats(answers.selling, like), xp.floats(answers.calls, like), xp.floats(answers.edge, like),
        xp.minimum(answers.day / 10, 3), xp.floats(answers.day == 0, like), xp.floats(answers.day < 3, like),
        xp.minimum(left / 10, 1), xp.floats(left <= 1, like),
        answers.round / ROUNDS, xp.floats(answers.round == 0, like), xp.floats(answers.round == 1, like),
        xp.floats(answers.round == 2, like), xp.floats(answers.round >= ROUNDS - 1, like),
    ])  # fmt: skip
    return xp.cat([own, _offer(answers.mine, like), _offer(answers.before, like)])


def _offer(offer: Action, like: Array) -> Array:
    """[M, OFFER] numbers that describe an offer, all 0 where there is none."""
    xp = namespace(like)
    quantity, position, ahead = offer
    there = xp.floats(quantity > 0, like)
    columns = [
        xp.ones_like(like), quantity / 10, xp.floats(quantity <= 1, like), xp.floats(quantity <= 3, like),
        xp.floats(quantity >= 8, like), xp.floats(quantity > 10, like), xp.floats(quantity == 10, like),
        position, xp.floats(position <= 0, like), xp.floats(position >= 1, like),
        ahead / 10, xp.floats(ahead == 0, like), xp.floats(ahead == 1, like), xp.floats(ahead <= 3, like),
        quantity * position / 10,
    ]  # fmt: skip
    return xp.stack([column * there for column in columns])


def classes(answers: Answers) -> tuple[Ints, Ints, Ints, Ints]:
    """[M] each: which operator, lot, price and day an answer is; the last three mean something for offers only."""
    xp, like = namespace(answers.day), answers.day
    quantity, position, ahead = answers.offer
    inner = 1 + xp.minimum(xp.floor(xp.clip(position, 0, 1) * (PRICES - 2)), PRICES - 3)
    price = xp.where(position <= 0, 0.0, xp.where(position >= 1, PRICES - 1.0, inner))
    op = xp.where(answers.op == ACCEPT, 0.0, xp.where(answers.op == REJECT, 1.0, 2.0))
    return xp.ints(op), _class(quantity, LOTS, like), xp.ints(price), _class(ahead, DAYS, like)


def _class(values: Array, ends: tuple[int, ...], like: Array) -> Ints:
    """Which class values belong to: the first whose upper end they do not pass, or the last one."""
    xp = namespace(like)
    uppers = xp.asarray([float(end) for end in ends[:-1]], like)
    return xp.ints((values[..., None] > uppers).sum(-1))


def logits(observer: Observer, context: Array) -> Array:
    """[M, Y, ANSWER] of contexts [M, D]."""
    xp, hidden = namespace(context), context
    last = len(observer.weights) - 1
    for i, (weight, bias) in enumerate(zip(observer.weights, observer.biases)):
        hidden = hidden @ weight + bias
        if i < last:
            hidden = xp.maximum(hidden, 0)
    return hidden.reshape(*hidden.shape[:-1], observer.size, ANSWER)


def log_shares(values: Array) -> Array:
    """Log-softmax along the last axis."""
    xp = namespace(values)
    shifted = values - xp.max(values)[..., None]
    return shifted - xp.log(xp.exp(shifted).sum(-1))[..., None]


def log_likelihoods(observer: Observer, answers: Answers) -> Array:
    """[M, Y] of every answer under every type; none is worse than the best by more than UNLIKELY."""
    xp = namespace(answers.day)
    found = _log_likelihoods(logits(observer, contexts(answers)), answers)
    strange = xp.asarray([0.0] * len(observer.types) + [observer.options.stranger], found)
    return xp.maximum(found, xp.max(found)[..., None] - UNLIKELY) + strange


def _log_likelihoods(values: Array, answers: Answers) -> Array:
    xp = namespace(values)
    total, begin = 0.0, 0
    offers = xp.floats(answers.op == REJECT, answers.day)[..., None]
    for head, (size, chosen) in enumerate(zip(HEADS, classes(answers))):
        each = xp.take(log_shares(values[..., begin : begin + size]), chosen[..., None])  # [M, Y]
        total = total + (each if head == 0 else each * offers)
        begin += size
    return total


def prior(shape: tuple[int, ...], observer: Observer, like: Array) -> Array:
    """Log-probabilities [..., Y] of somebody of whom nothing is known: all types are as likely as the stranger."""
    return namespace(like).zeros((*shape, observer.size), like) - float(np.log(observer.size))


def posterior(belief: Array, evidence: Array, options: BeliefOptions) -> Array:
    """Log-probabilities [..., Y] after summed log-likelihoods [..., Y] of some answers."""
    xp = namespace(belief)
    shares = xp.exp(log_shares(belief + options.temper * evidence))
    return log_shares(xp.log(xp.maximum(shares, options.floor)))


def next_day(belief: Array, options: BeliefOptions) -> Array:
    """Log-probabilities [..., Y] on the next morning, before anything was heard."""
    return log_shares(options.carry * belief)


def answering(observer: Observer, belief: Array, offers: Answers) -> Array:
    """[M, 2] chances that my offers (`offers.mine`; op and offer mean nothing) are taken, and that the partner leaves.

    One step of looking ahead: means over the types by the belief [M, Y].
    """
    xp = namespace(belief)
    ops = xp.exp(log_shares(logits(observer, contexts(offers))[..., : len(OPS)]))  # [M, Y, 3]
    mean = (ops * xp.exp(belief)[..., None]).sum(-2)
    return xp.stack([mean[..., 0], mean[..., 2]])


# --- files ----------------------------------------------------------------------------------------------------------


def to_arrays(observer: Observer) -> dict[str, Array]:
    """Plain arrays, for an .npz file; half precision is enough for likelihoods."""
    kept = {"types": np.array(observer.types), "options": np.array([*vars(observer.options).values()])}
    for i, (weight, bias) in enumerate(zip(observer.weights, observer.biases)):
        kept |= {f"weight{i}": np.asarray(weight, np.float16), f"bias{i}": np.asarray(bias, np.float16)}
    return kept


def from_arrays(arrays: Mapping[str, Any], where: str) -> Observer:
    """The inverse; whatever does not fit together raises UserError."""
    try:
        types = tuple(str(name) for name in arrays["types"])
        options = BeliefOptions(*(float(value) for value in arrays["options"]))
        count = sum(name.startswith("weight") for name in arrays)
        weights, biases = (
            tuple(np.asarray(arrays[f"{part}{i}"], np.float32) for i in range(count)) for part in ("weight", "bias")
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{where} holds no observer of partners: {error}.") from None
    sizes = [CONTEXT, *(len(bias) for bias in biases)]
    fits = all(w.shape == pair for w, pair in zip(weights, itertools.pairwise(sizes)))
    if not count or not fits or sizes[-1] != (len(types) + 1) * ANSWER:
        raise UserError(f"{where} holds an observer whose layers do not fit each other or its {len(types)} types.")
    if not all(np.isfinite(part).all() for part in (*weights, *biases)):
        raise UserError(f"{where} holds an observer with a weight that is not a finite number.")
    return Observer(types, weights, biases, options)


def save_observer(path: Path, observer: Observer) -> None:
    """Write an observer to an .npz file, by way of a temporary name."""
    arrays: dict[str, Any] = {"kind": np.array(KIND), **to_arrays(observer)}
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, **arrays)


def load_observer(path: Path) -> Observer:
    """Read one; anything else raises UserError."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise UserError(f"{path} is not an observer of partners: {error}") from None
    if str(arrays.pop("kind", "")) != KIND:
        raise UserError(f"{path} is not an observer of partners; `marlab market beliefs` makes one.")
    return from_arrays(arrays, str(path))
