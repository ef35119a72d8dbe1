"""Fitting: all experts at once, each on its own decisions, by the likelihood of what they did."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, log_softmax

from marlab.market.clones.examples import ASK, FACTS, LEAVE, TAKE, Examples
from marlab.market.vector.clones import network
from marlab.market.vector.clones.network import Stacked, Weights
from marlab.market.vector.rounds import ROUNDS

PARTS = ("leave", "accept", "day", "lot", "price")
"""The heads, in the order in which a clone draws."""
CHUNK = 8192
"""Decisions that are measured together."""
MOST_CHECKED = 8192
"""Validation decisions of an expert that are looked at after every unit."""


class Likelihood(NamedTuple):
    """-log p of what was done, [E, n, PARTS], and where a part counts at all (an offer's day only with an offer)."""

    loss: Tensor
    counts: Tensor  # bool


def likelihood(weights: Weights, inputs: Tensor, facts: Tensor) -> Likelihood:
    """Of decisions [E, n]: inputs [E, n, all], facts [E, n, FACTS]."""
    fact, layers = dict(zip(FACTS, facts.long().unbind(-1))), Stacked(weights)
    found = network.heads(layers, inputs, fact["round"])
    op, stays = fact["op"], fact["op"] != LEAVE
    offers = op == ASK
    losses = [
        binary_cross_entropy_with_logits(found.leave, (op == LEAVE).float(), reduction="none"),
        binary_cross_entropy_with_logits(found.accept, (op == TAKE).float(), reduction="none"),
        _picked(network.only(found.day, fact["days"]), fact["day"]),
        _picked(network.only(network.lot_logits(layers, found, fact["day"]), fact["lots"]), fact["lot"]),
        _picked(network.price_logits(layers, found, fact["day"], fact["lot"]), fact["price"]),
    ]
    counts = [torch.ones_like(stays), stays & (fact["on_table"] > 0), offers, offers, offers]
    return Likelihood(torch.stack(losses, -1), torch.stack(counts, -1))


def _picked(logits: Tensor, index: Tensor) -> Tensor:
    return -log_softmax(logits, -1).gather(-1, index[..., None])[..., 0]


def losses(weights: Weights, data: Sequence[Examples], device: torch.device) -> NDArray[np.float64]:
    """[E, PARTS + 1]: mean -log p of each part where it counts, and of whole decisions, expert by expert."""
    return np.array(
        [_loss_of({k: v[e : e + 1] for k, v in weights.items()}, each, device) for e, each in enumerate(data)]
    )


@torch.no_grad()
def _loss_of(weights: Weights, data: Examples, device: torch.device) -> list[float]:
    sums, counts = torch.zeros(len(PARTS), dtype=torch.float64), torch.zeros(len(PARTS), dtype=torch.float64)
    for start in range(0, len(data), CHUNK):
        rows = slice(start, start + CHUNK)
        inputs, facts = torch.as_tensor(data.inputs[rows]), torch.as_tensor(data.facts[rows])
        found = likelihood(weights, inputs.to(device).float()[None], facts.to(device)[None])
        sums += (found.loss * found.counts).sum((0, 1)).cpu()
        counts += found.counts.sum((0, 1)).cpu()
    return [*(sums / counts.clamp(min=1)).tolist(), float(sums.sum()) / max(1, len(data))]


def start_at_shares(weights: Weights, data: Sequence[Examples]) -> None:
    """Let every head begin where its expert's shares are: the chance of leaving by round, and what offers say."""
    for e, each in enumerate(data):
        op, rounds = each.column("op"), each.column("round")
        asks, heard = op == ASK, (op != LEAVE) & (each.column("on_table") > 0)
        talks = np.bincount(rounds, minlength=ROUNDS)
        weights["leave_round"][e, :, 0] = _logit(np.bincount(rounds[op == LEAVE], minlength=ROUNDS), talks)
        _, accept, day, _, _ = weights["heads_bias"][e, 0].split(network.HEADS)
        accept[:] = _logit(np.array((op == TAKE).sum()), np.array(heard.sum()))
        for name, bias in (("day", day), ("lot", weights["lot_bias"][e, 0]), ("price", weights["price_bias"][e, 0])):
            seen = np.bincount(each.column(name)[asks], minlength=len(bias))
            bias[:] = torch.as_tensor(np.log((seen + 0.5) / (seen.sum() + 0.5 * len(seen))))


def _logit(hits: NDArray[Any], trials: NDArray[Any]) -> Tensor:
    share = (hits + 0.5) / (trials + 1)
    return torch.as_tensor(np.log(share / (1 - share)), dtype=torch.float32)


class Fit:
    """A trainer (`lab.runs.trainer`): a unit is so many steps of Adam with a falling rate.

    After every unit the weights of each expert are kept if they explain its validation decisions best so far.
    """

    def __init__(
        self, data: Sequence[Examples], checked: Sequence[Examples], *, hidden: int, units: int, steps: int,
        batch: int, lr: float, decay: float, seed: int, device: torch.device, start: Weights | None = None,
    ) -> None:  # fmt: skip
        """`start`: weights to begin with, which are kept until others explain the validation decisions better."""
        self.step, self.total = 0, units
        self._steps, self._batch, self._lr, self._device = steps, batch, lr, device
        self._checked = [each.take(np.arange(min(len(each), MOST_CHECKED))) for each in checked]
        self._generator = torch.Generator().manual_seed(seed)
        first = network.new_weights(len(data), hidden, self._generator)
        start_at_shares(first, data)
        if start is not None:
            first = {name: values.clone() for name, values in start.items()}
        self.weights = {name: values.to(device).requires_grad_() for name, values in first.items()}
        self.best = {name: values.detach().clone() for name, values in self.weights.items()}
        self.lowest = torch.full((len(data),), math.inf, dtype=torch.float64)
        if start is not None:
            self.lowest = torch.as_tensor(losses(self.best, self._checked, device)[:, -1])
        self._adam = torch.optim.AdamW(self.weights.values(), lr=lr, weight_decay=decay)
        self._sizes = torch.tensor([len(each) for each in data])
        self._starts = torch.cumsum(self._sizes, 0) - self._sizes
        self._inputs = torch.as_tensor(np.concatenate([each.inputs for each in data])).to(device)
        self._facts = torch.as_tensor(np.concatenate([each.facts for each in data])).to(device)

    def iterate(self) -> Mapping[str, Any]:
        """One unit."""
        sums = torch.zeros(len(PARTS), device=self._device)
        counts = torch.zeros(len(PARTS), device=self._device)
        for k in range(self._steps):
            done = (self.step * self._steps + k) / (self.total * self._steps)
            for group in self._adam.param_groups:
                group["lr"] = self._lr * 0.5 * (1 + math.cos(math.pi * done))
            found = likelihood(self.weights, *self._drawn())
            counted = found.loss * found.counts
            self._adam.zero_grad()
            (counted.sum() / self._batch).backward()  # a mean for every expert, whose weights are its own
            self._adam.step()
            sums += counted.detach().sum((0, 1))
            counts += found.counts.sum((0, 1))
        self.step += 1
        means = (sums / counts.clamp(min=1)).tolist()
        now = torch.as_tensor(losses(self.weights, self._checked, self._device))
        better = now[:, -1] < self.lowest
        self.lowest = torch.where(better, now[:, -1], self.lowest)
        for name, values in self.weights.items():
            mine = better.to(self._device)[:, None, None]
            self.best[name] = torch.where(mine, values.detach(), self.best[name])
        told = {f"fit/{part}": value for part, value in zip(PARTS, means)}
        told |= {f"validation/{part}": value for part, value in zip((*PARTS, "loss"), now.mean(0).tolist())}
        return told

    def _drawn(self) -> tuple[Tensor, Tensor]:
        chance = torch.rand((len(self._sizes), self._batch), generator=self._generator)
        rows = (self._starts[:, None] + (chance * self._sizes[:, None]).long()).to(self._device)
        return self._inputs[rows].float(), self._facts[rows]

    def state_dict(self) -> dict[str, Any]:
        """Everything that a fit goes on from."""
        return {
            "step": self.step,
            "weights": {name: values.detach() for name, values in self.weights.items()},
            "best": self.best,
            "lowest": self.lowest,
            "adam": self._adam.state_dict(),
            "generator": self._generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        with torch.no_grad():
            for name, values in self.weights.items():
                values.copy_(state["weights"][name])
        self.best = {name: values.to(self._device) for name, values in state["best"].items()}
        self.lowest = state["lowest"].cpu()
        self._adam.load_state_dict(state["adam"])
        self._generator.set_state(state["generator"].cpu())
        self.step = int(state["step"])
