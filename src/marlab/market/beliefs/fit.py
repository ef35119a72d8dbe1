"""Fitting an observer: how likely each type is to answer what, by the likelihood of what agents did answer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from marlab.market.beliefs.watch import Samples
from marlab.market.rules.beliefs import ANSWER, CONTEXT, HEADS, BeliefOptions, Observer


class Network(nn.Module):
    """The observer while it learns."""

    def __init__(self, types: int, width: int) -> None:
        super().__init__()
        sizes = [CONTEXT, width, width, (types + 1) * ANSWER]
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(sizes))
        self.types = types

    def observer(self, names: Sequence[str], options: BeliefOptions) -> Observer:
        """The weights as plain arrays."""
        layers: list[Any] = list(self.layers)
        weights = tuple(layer.weight.detach().T.contiguous().cpu().numpy() for layer in layers)
        biases = tuple(layer.bias.detach().cpu().numpy() for layer in layers)
        return Observer(tuple(names), weights, biases, options)

    def forward(self, context: Tensor) -> Tensor:
        """[M, Y, ANSWER]"""
        hidden = context
        for layer in list(self.layers)[:-1]:
            hidden = torch.relu(layer(hidden))
        out: Tensor = self.layers[-1](hidden)
        return out.view(*out.shape[:-1], self.types + 1, ANSWER)


def losses(logits: Tensor, samples: Samples) -> tuple[Tensor, Tensor]:
    """[M] each: how badly the own type and the stranger foresaw the answers (negative log-likelihoods)."""
    rows, own = torch.arange(len(samples), device=logits.device), samples.type.long()
    pair = torch.stack([logits[rows, own], logits[:, -1]], 1)  # [M, 2, ANSWER]
    loss, begin = torch.zeros(pair.shape[:2], device=pair.device), 0
    for head, size in enumerate(HEADS):
        shares = torch.log_softmax(pair[..., begin : begin + size], -1)
        each = -shares.gather(-1, samples.chosen[:, head].long()[:, None, None].expand(-1, 2, 1))[..., 0]
        loss = loss + (each if head == 0 else each * samples.offers[:, None])
        begin += size
    return loss[:, 0], loss[:, 1]


class Fit:
    """A trainer (`lab.runs.trainer`): a unit is so many steps of Adam with a falling rate.

    In every step all types answer equally often. The stranger learns from all of them, the others from their own.
    """

    def __init__(
        self, samples: Samples, checked: Samples, types: Sequence[str], *, width: int, units: int, steps: int,
        batch: int, lr: float, seed: int, device: torch.device,
    ) -> None:  # fmt: skip
        self.step, self.total = 0, units
        self.types = tuple(types)
        self._steps, self._batch, self._lr, self._device = steps, batch, lr, device
        self._samples, self._checked = samples.to(device), checked.to(device)
        order = torch.argsort(samples.type.long(), stable=True)
        self._order = order.to(device)
        self._sizes = torch.bincount(samples.type.long(), minlength=len(types))
        self._starts = torch.cumsum(self._sizes, 0) - self._sizes
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = Network(len(types), width).to(device)
        self._adam = torch.optim.Adam(self.network.parameters(), lr=lr)
        self._generator = torch.Generator().manual_seed(seed)

    def iterate(self) -> Mapping[str, float]:
        """One unit."""
        total = torch.zeros(2, device=self._device)
        for k in range(self._steps):
            done = (self.step * self._steps + k) / (self.total * self._steps)
            for group in self._adam.param_groups:
                group["lr"] = self._lr * 0.5 * (1 + math.cos(math.pi * done))
            some = self._samples.take(self._drawn())
            own, stranger = losses(self.network(some.context.float()), some)
            self._adam.zero_grad()
            (own + stranger).mean().backward()
            self._adam.step()
            total += torch.stack([own.detach().mean(), stranger.detach().mean()])
        self.step += 1
        fitted = (total / self._steps).tolist()
        checked = self.checked()
        return {
            "fit/own": fitted[0], "fit/stranger": fitted[1],
            "validation/own": checked[0], "validation/stranger": checked[1], "validation/loss": checked[0],
        }  # fmt: skip

    @torch.no_grad()
    def checked(self) -> tuple[float, float]:
        """Mean losses of own types and of the stranger on samples that are not fitted; all types count the same."""
        parts = [losses(self.network(some.context.float()), some) for some in self._checked.split(8192)]
        types = self._checked.type.long()
        weight = 1.0 / torch.bincount(types, minlength=len(self.types)).clamp(min=1).float()[types]
        own, stranger = (torch.cat([part[i] for part in parts]) for i in range(2))
        return tuple(float((values * weight).sum() / weight.sum()) for values in (own, stranger))  # type: ignore[return-value]

    def observer(self) -> Observer:
        """What was learnt so far."""
        return self.network.observer(self.types, BeliefOptions())

    def _drawn(self) -> Tensor:
        """Rows of a batch, all types alike."""
        there = torch.nonzero(self._sizes)[:, 0]
        kind = there[torch.randint(len(there), (self._batch,), generator=self._generator)]
        chance = torch.rand(self._batch, generator=self._generator)
        rows = self._starts[kind] + (chance * self._sizes[kind]).long()
        return self._order[rows.to(self._device)]

    def state_dict(self) -> dict[str, Any]:
        """Everything that a fit goes on from."""
        return {
            "step": self.step, "network": self.network.state_dict(), "adam": self._adam.state_dict(),
            "generator": self._generator.get_state(),
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        self.network.load_state_dict(state["network"])
        self._adam.load_state_dict(state["adam"])
        self._generator.set_state(state["generator"].cpu())
        self.step = int(state["step"])
