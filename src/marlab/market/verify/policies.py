"""Level 3 of the check: the built-in agents as arrays beside the real ones, by what they do and what they earn.

Both play the same configs, every level being one agent. For each world: shares of accepting, offering and leaving,
what is offered, how negotiations end, and scores by level. Play is random in both, so the differences of worlds have an
interval; the array version agrees where it holds 0, or where the difference is too small to matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from marlab.lab.stats import student
from marlab.market.logs.worldlog import ACCEPT, AGREED, BROKEN, END, REJECT
from marlab.market.vector.builtin import Seated, by_name
from marlab.market.vector.configs import join
from marlab.market.vector.market import Market
from marlab.market.vector.replay import Recorded
from marlab.market.vector.rounds import HALVES
from marlab.market.vector.setup import make_setup

Table = NDArray[np.float64]
COLUMNS = (
    "first offers made", "accepts", "offers", "leaves", "units", "days ahead", "price position", "agreed", "broken",
    "rounds", "score, first level", "score, middle level", "score, last level",
)  # fmt: skip


LEVEL = 0.9995
"""Of the intervals: a dozen measures of several agents are looked at."""
NEGLIGIBLE = 0.02
"""A difference below this share of the value (or of 1) does not count."""


@dataclass(frozen=True)
class Beside:
    """One measure of an agent in both markets."""

    name: str
    real: float
    ours: float
    low: float  # interval of the difference
    high: float

    @property
    def agrees(self) -> bool:
        """Whether nothing speaks against the array version."""
        small = abs(self.ours - self.real) <= NEGLIGIBLE * max(1.0, abs(self.real))
        return small or self.low <= 0 <= self.high

    def line(self) -> str:
        """For people."""
        verdict = "" if self.agrees else "  DIFFERS"
        return (
            f"    {self.name:20s} {self.real:8.4f} in the simulator, {self.ours:8.4f} here, "
            f"difference from {self.low:+.4f} to {self.high:+.4f}{verdict}"
        )


def compare_policies(agents: Sequence[str], worlds: Sequence[Recorded], repeats: int, seed: int) -> list[Beside]:
    """Real worlds of agents that sit level by level, beside `repeats` plays of each of their configs here."""
    real = np.array([seen_in(world) for world in worlds])
    ours = played_here(agents, worlds, repeats, seed)  # [worlds, repeats, columns]
    found = []
    for i, name in enumerate(COLUMNS):
        paired = np.nanmean(ours[..., i], 1) - real[:, i]  # the same config in both
        paired = paired[~np.isnan(paired)]
        interval = student(paired.tolist(), LEVEL)
        if interval is not None:
            found.append(Beside(name, float(np.nanmean(real[:, i])), float(np.nanmean(ours[..., i])), *interval))
    return found


def seen_in(world: Recorded) -> Table:
    """The measures of a recorded world."""
    said, talks = world.tables["decisions"], world.tables["negotiations"]
    n = said["negotiation"]
    first = (said["round"] == 0) & (said["agent"] == talks["caller"][n])
    answered, offers = ~first, said["op"] == REJECT
    span = np.maximum(talks["price_max"] - talks["price_min"], 1)[n]
    position = (said["price"] - talks["price_min"][n]) / span
    ops = [np.mean(said["op"][answered] == op) for op in (ACCEPT, REJECT, END)]
    terms = [said["quantity"][offers].mean(), (said["day"] - talks["day"][n])[offers].mean(), position[offers].mean()]
    ends = [
        np.mean(talks["outcome"] == AGREED),
        np.mean(talks["outcome"] == BROKEN),
        np.minimum(talks["rounds"], 20).mean(),
    ]
    return np.array([first.sum() / len(talks["day"]), *ops, *terms, *ends, *_levels(world.scores, world.level)])


def _levels(scores: Table, level: NDArray[np.int64]) -> list[float]:
    last = level.max()
    chosen = (level == 0, (level > 0) & (level < last), level == last)
    return [float(scores[some].mean()) if some.any() else np.nan for some in chosen]


def played_here(agents: Sequence[str], worlds: Sequence[Recorded], repeats: int, seed: int) -> Table:
    """The same measures of the vector market, [worlds, repeats, columns]."""
    configs = join([world.config for world in worlds])
    market = Market(make_setup(configs.take(np.repeat(np.arange(len(worlds)), repeats))))
    generator = torch.Generator().manual_seed(seed)
    policies = {i + 1: by_name(name, generator) for i, name in enumerate(agents)}
    kind = 1 + torch.arange(market.levels).flip(0) % len(agents)  # the last level is the first agent's
    policy = Seated(market, kind[:, None].expand(market.setup.lines.shape), policies, generator)
    sums = _Sums(market)
    while bool(market.playing.any()):
        market.open_day()
        policy.open(market)
        for _ in range(HALVES):
            sums.before()
            moves = policy(market)
            sums.note(moves.op, moves.units, moves.price, moves.ahead)
            market.move(moves)
        sums.ends()
        policy.close(market)
        market.close_day()
    return sums.table().reshape(len(worlds), repeats, -1)


class _Sums:
    """Counts by world while a market is played."""

    def __init__(self, market: Market) -> None:
        self._market = market
        names = (
            "threads",
            "first",
            "accept",
            "offer",
            "end",
            "made",
            "units",
            "ahead",
            "position",
            "agreed",
            "broken",
            "rounds",
        )
        self._sum = {name: torch.zeros(market.worlds, dtype=torch.float64) for name in names}

    def _add(self, name: str, values: torch.Tensor) -> None:
        self._sum[name] += values.double().flatten(1).sum(1)

    def before(self) -> None:
        self._running = self._market.threads.running

    def note(self, op: torch.Tensor, units: torch.Tensor, price: torch.Tensor, ahead: torch.Tensor) -> None:
        market, running = self._market, self._running
        offers = running & (op == REJECT) & (units > 0)
        if market.half == 0:
            self._add("threads", running)
            self._add("first", offers)
        else:
            for name, kind in (("accept", ACCEPT), ("offer", REJECT), ("end", END)):
                self._add(name, running & (op == kind))
        span = (market.ranges.price_high - market.ranges.price_low).clamp(min=1)
        self._add("made", offers)
        for name, values in (
            ("units", units),
            ("ahead", ahead),
            ("position", (price - market.ranges.price_low) / span),
        ):
            self._add(name, values * offers)

    def ends(self) -> None:
        threads = self._market.threads
        signed = threads.agreed_units > 0
        there = signed | (threads.ended_half < HALVES) | threads.running
        self._add("agreed", signed)
        self._add("broken", ~signed & (threads.ended_half < HALVES))
        last = torch.where(threads.running, HALVES - 1, threads.ended_half)
        self._add("rounds", (last // 2 + 1) * there)

    def table(self) -> Table:
        s, market = self._sum, self._market
        answered = (s["accept"] + s["offer"] + s["end"]).clamp(min=1)
        threads, made = s["threads"].clamp(min=1), s["made"].clamp(min=1)
        columns = [s["first"] / threads, *(s[name] / answered for name in ("accept", "offer", "end"))]
        columns += [s[name] / made for name in ("units", "ahead", "position")]
        columns += [s[name] / threads for name in ("agreed", "broken", "rounds")]
        scores, first = market.scores().double(), market.setup.first[..., None]
        last = torch.arange(market.levels)[:, None] == market.levels - 1
        for some in (first, ~first & ~last, last.expand(first.shape)):
            columns.append(torch.where(some, scores, torch.nan).flatten(1).nanmean(1))
        return torch.stack(columns, 1).numpy()
