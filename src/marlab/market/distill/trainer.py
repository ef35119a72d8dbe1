"""The student learns on situations that it comes into itself: it plays, its teachers say what they would have done."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from marlab.lab.ppo.choices import apply_mask
from marlab.lab.runs.rng import Rngs
from marlab.market.distill.settings import DistillConfig
from marlab.market.distill.teachers import Asking, TaughtGround, Teacher, by_head, entry_shares
from marlab.market.online.net import AroundRule
from marlab.market.online.pool import Pool
from marlab.market.rules import around

LEAST_RATE = 0.1


class DistillTrainer:
    """A unit is a batch of worlds and the steps of learning after it; everything seen so far is learnt from."""

    def __init__(
        self, config: DistillConfig, teachers: Sequence[Teacher], device: torch.device, weights: Tensor | None = None
    ) -> None:
        """`weights` [2, teachers]: how much each teacher counts at the first level and at others."""
        self.config, self.online, self.device = config, config.online(), device
        self.teachers = list(teachers)
        same = torch.full((2, len(self.teachers)), 1 / len(self.teachers))
        self.weights = (same if weights is None else weights).to(device)
        self.pool = Pool(config.opponents, config.clones, 0)
        rngs = Rngs(config.seed)
        self.net = AroundRule(config.hidden, around.INPUTS, config.bonus, rngs.torch("distill/net")).to(device)
        self._adam = torch.optim.Adam(self.net.policy.parameters(), config.lr)
        self._generator = torch.Generator(device=device).manual_seed(rngs.draw_seed("distill/batches"))
        self.step, self.total = 0, config.generations
        self._seen: dict[str, Tensor] = {}  # inputs, masks and targets

    def iterate(self) -> Mapping[str, float]:
        """One unit."""
        x, mask, target = self._situations()
        self._remember(x.half(), mask, target.half())
        told = self._learn()
        self.step += 1
        mine = by_head(apply_mask(self.net.logits(x), mask))
        told["distill/agreement"] = float(_same(mine, target).float().mean()) if len(x) else math.nan
        told["distill/choices"] = float(len(x))
        return told

    @torch.no_grad()
    def _situations(self) -> tuple[Tensor, Tensor, Tensor]:
        """Inputs, masks and the teachers' shares of a batch of worlds that the student plays."""
        plays: Any = partial(Asking, teachers=[teacher for teacher in self.teachers if teacher.answers])
        ground = TaughtGround(self.online, self.net, self.pool, self.step, self.device, plays=plays)
        ground.told = []
        rows, _ = ground.play(self.config.play_days)
        entries = torch.cat(ground.told) if ground.told else None
        first = ground.market.setup.first[ground.rows.world, ground.rows.level][rows.seat]
        weights = self.weights[torch.where(first, 0, 1)]  # [M, teachers]
        target, place = torch.zeros_like(rows.mask, dtype=torch.float32), 0
        for number, teacher in enumerate(self.teachers):
            if not teacher.answers:
                shares = teacher.shares(rows.x, rows.mask)
            else:
                assert entries is not None
                shares, place = entry_shares(entries[:, place], rows.mask), place + 1
            target += weights[:, number, None] * shares
        return rows.x, rows.mask, target

    def _remember(self, *parts: Tensor) -> None:
        for name, part in zip(("x", "mask", "target"), parts):
            known = torch.cat([self._seen[name], part]) if name in self._seen else part
            self._seen[name] = known[-self.config.most :]

    def _learn(self) -> dict[str, float]:
        config, count = self.config, len(self._seen["x"])
        if not count:
            return {"distill/loss": math.nan}
        total = torch.zeros((), device=self.device)
        for k in range(config.steps):
            done = (self.step * config.steps + k) / (self.total * config.steps)
            for group in self._adam.param_groups:
                group["lr"] = config.lr * (1 - (1 - LEAST_RATE) * done)
            rows = torch.randint(count, (config.batch,), generator=self._generator, device=self.device)
            x, mask, target = (self._seen[name][rows] for name in ("x", "mask", "target"))
            loss = _cross_entropy(apply_mask(self.net.logits(x.float()), mask), mask, target.float())
            self._adam.zero_grad()
            loss.backward()
            self._adam.step()
            total += loss.detach()
        return {"distill/loss": float(total) / config.steps}

    def state_dict(self) -> dict[str, Any]:
        """Everything that it goes on from."""
        return {
            "step": self.step,
            "net": self.net.state_dict(),
            "adam": self._adam.state_dict(),
            "seen": self._seen,
            "generator": self._generator.get_state(),
            "weights": self.weights,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        self.net.load_state_dict(state["net"])
        self._adam.load_state_dict(state["adam"])
        self._generator.set_state(state["generator"].cpu())
        self._seen = {name: part.to(self.device) for name, part in state["seen"].items()}
        self.weights, self.step = state["weights"].to(self.device), int(state["step"])


def _cross_entropy(logits: Tensor, mask: Tensor, target: Tensor) -> Tensor:
    """Mean over choices of the heads' cross-entropies."""
    loss = torch.zeros(len(logits), device=logits.device)
    for part, is_open, wanted in zip(*(each.split(around.HEADS, -1) for each in (logits, mask, target))):
        loss = loss - (part.log_softmax(-1).masked_fill(~is_open, 0.0) * wanted).sum(-1)
    return loss.mean()


def _same(mine: Tensor, target: Tensor) -> Tensor:
    """[M] whether the likeliest entries of all heads are the same."""
    pairs = zip(mine.split(around.HEADS, -1), target.split(around.HEADS, -1))
    return torch.stack([a.argmax(-1) == b.argmax(-1) for a, b in pairs]).all(0)
