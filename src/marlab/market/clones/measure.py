"""Clone beside expert on worlds that were never fitted: shares, terms, the chance of leaving, and likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from marlab.lab.stats import Measured, ratio_interval
from marlab.market.clones.examples import ASK, FACTS, LEAVE, TAKE, Examples
from marlab.market.clones.fit import CHUNK, PARTS
from marlab.market.vector.books import SLOTS
from marlab.market.vector.clones import network
from marlab.market.vector.clones.network import LOTS, PRICES, Stacked, Weights
from marlab.market.vector.rounds import ROUNDS

Array = NDArray[np.float64]
TOP = PRICES - 1
SIZES = {"day": SLOTS, "lot": LOTS, "price": PRICES}


@dataclass(frozen=True)
class Predicted:
    """What a clone would have done at n decisions of its expert, given what was done before."""

    leave: Array  # [n], probability
    accept: Array  # [n], probability, of those who stay; 0 without an offer
    day: Array  # [n, SLOTS]; given an offer
    lot: Array  # [n, LOTS], for the day that was offered
    price: Array  # [n, PRICES], for the day and the lot that were offered


@torch.no_grad()
def predicted(weights: Weights, data: Examples) -> Predicted:
    """`weights` are those of one expert, [1, ...]."""
    layers, found = Stacked(weights), list[list[torch.Tensor]]()
    for start in range(0, len(data), CHUNK):
        inputs = torch.as_tensor(data.inputs[start : start + CHUNK]).float()[None]
        fact = dict(zip(FACTS, torch.as_tensor(data.facts[start : start + CHUNK])[None].long().unbind(-1)))
        heads = network.heads(layers, inputs, fact["round"])
        found.append(
            [
                torch.sigmoid(heads.leave),
                torch.sigmoid(heads.accept) * fact["on_table"],
                torch.softmax(network.only(heads.day, fact["days"]), -1),
                torch.softmax(network.only(network.lot_logits(layers, heads, fact["day"]), fact["lots"]), -1),
                torch.softmax(network.price_logits(layers, heads, fact["day"], fact["lot"]), -1),
            ]
        )
    return Predicted(*(torch.cat(parts, 1)[0].double().numpy() for parts in zip(*found)))


@dataclass(frozen=True)
class Marginals:
    """The predictor that learns nothing: shares in the worlds that were fitted."""

    leave: float
    accept: float
    day: Array
    lot: Array
    price: Array


def marginals(data: Examples) -> Marginals:
    """From the decisions that were fitted; nothing is impossible."""
    op = data.column("op")
    stays = (op != LEAVE) & (data.column("on_table") > 0)
    offers = op == ASK
    shares = {
        name: (np.bincount(data.column(name)[offers], minlength=size) + 0.5) / (offers.sum() + 0.5 * size)
        for name, size in SIZES.items()
    }
    return Marginals(
        float(((op == LEAVE).sum() + 0.5) / (len(op) + 1)),
        float(((op == TAKE).sum() + 0.5) / (stays.sum() + 1)),
        **shares,
    )


def beside(weights: Weights, data: Examples, trivial: Marginals) -> dict[str, Any]:
    """Everything about one expert; intervals resample whole worlds."""
    clone, op, rounds = predicted(weights, data), data.column("op"), data.column("round")
    asked, offers = data.column("on_table") > 0, op == ASK
    leaves, world = op == LEAVE, data.column("world").astype(np.int64)
    stays = asked & ~leaves
    groups = np.unique(world, return_inverse=True)[1]
    nll = {"leave": _binary(clone.leave, leaves), "accept": _binary(clone.accept, op == TAKE)}
    flat = {
        "leave": _binary(np.full(len(op), trivial.leave), leaves),
        "accept": _binary(np.full(len(op), trivial.accept), op == TAKE),
    }
    for name in SIZES:
        at = data.column(name)
        nll[name] = -np.log(np.maximum(getattr(clone, name)[np.arange(len(at)), at], 1e-9))
        flat[name] = -np.log(getattr(trivial, name)[at])
    counts = {"leave": np.ones(len(op), bool), "accept": stays, "day": offers, "lot": offers, "price": offers}
    entropy = {part: _mean(nll[part], counts[part], groups) for part in PARTS}
    entropy |= {"decision": _mean(sum(nll[p] * counts[p] for p in PARTS), counts["leave"], groups)}
    baseline = {part: _mean(flat[part], counts[part], groups) for part in PARTS}
    baseline |= {"decision": _mean(sum(flat[p] * counts[p] for p in PARTS), counts["leave"], groups)}
    takes = (1 - clone.leave) * clone.accept
    return {
        "decisions": len(op),
        "cross_entropy": entropy,
        "marginal": baseline,
        "shares": {
            "leave": _pair(leaves, clone.leave, np.ones(len(op), bool), groups),
            "accept": _pair(op == TAKE, takes, asked, groups),
            "offer": _pair(offers, 1 - clone.leave - takes, np.ones(len(op), bool), groups),
        },
        "terms": {
            "lot": _pair(data.column("lot") + 1, clone.lot @ np.arange(1, LOTS + 1), offers, groups),
            "price": _pair(data.column("price") / TOP, clone.price @ np.linspace(0, 1, PRICES), offers, groups),
            "today": _pair(data.column("day") == 0, clone.day[:, 0], offers, groups),
            "day": _pair(data.column("day"), clone.day @ np.arange(SLOTS), offers, groups),
        },
        "hazard": [
            _pair(leaves, clone.leave, rounds == r, groups) | {"decisions": int((rounds == r).sum())}
            for r in range(ROUNDS)
        ],
        "distributions": {
            name: {
                "expert": _shares(np.eye(size)[data.column(name)], offers),
                "clone": _shares(getattr(clone, name), offers),
            }
            for name, size in SIZES.items()
        },
    }


def _binary(chance: Array, happened: NDArray[np.bool_]) -> Array:
    p: Array = np.clip(np.where(happened, chance, 1 - chance), 1e-9, 1)
    return -np.log(p)


def _mean(values: Any, counts: NDArray[np.bool_], groups: NDArray[np.int64]) -> Measured:
    """A mean over the decisions that count, with the interval over worlds."""
    if not counts.any():
        return Measured(None)
    mean = float(np.asarray(values, float)[counts].mean())
    if len(np.unique(groups[counts])) < 2:
        return Measured(mean)
    low, high = ratio_interval(groups, lambda total, n: total / np.maximum(n, 1e-9), values * counts, counts)
    return Measured(mean, low, high)


def _pair(real: Any, clone: Any, counts: NDArray[np.bool_], groups: NDArray[np.int64]) -> dict[str, Any]:
    real, clone = np.asarray(real, float), np.asarray(clone, float)
    return {"expert": _mean(real, counts, groups), "clone": _mean(clone, counts, groups)}


def _shares(values: Array, counts: NDArray[np.bool_]) -> list[float]:
    return [float(v) for v in values[counts].mean(0)] if counts.any() else []
