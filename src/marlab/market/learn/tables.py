"""Samples as the trainers take them: by number, in batches of tensors on the device that learns.

On a GPU every column lies in its memory, so a batch costs a few gathers and the host never makes it wait. On a CPU
columns stay memory-mapped and a batch reads only its own rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from marlab.lab.errors import UserError
from marlab.market.logs.worldlog import ACCEPT, REJECT
from marlab.market.networks.executor import L3Inputs
from marlab.market.networks.losses import ActionLabels
from marlab.market.rules import executor
from marlab.market.rules.l1 import Action
from marlab.market.samples.dataset import HISTORY, Columns, Samples

CHUNK = 1 << 20
"""Rows that are sent to a GPU at a time."""
LENGTHS = (1, 4, 10, HISTORY)
"""Where `DecisionTable.by_length` parts histories."""


class Store:
    """Columns that can be indexed by rows and give tensors on one device."""

    def __init__(self, columns: Columns, device: torch.device) -> None:
        self.device = device
        self.rows = len(next(iter(columns.values())))
        self._mapped = columns if device.type == "cpu" else {}
        self._loaded = {} if device.type == "cpu" else {k: _send(v, device) for k, v in columns.items()}

    def take(self, name: str, index: Tensor) -> Tensor:
        """Rows [n, ...] of a column."""
        if self.device.type == "cpu":
            return torch.from_numpy(np.ascontiguousarray(self._mapped[name][index.numpy()]))
        return self._loaded[name][index]


def _send(values: NDArray[Any], device: torch.device) -> Tensor:
    out = torch.empty(values.shape, dtype=torch.from_numpy(np.zeros(0, values.dtype)).dtype, device=device)
    for start in range(0, len(values), CHUNK):
        out[start : start + CHUNK] = torch.from_numpy(np.array(values[start : start + CHUNK]))
    return out


class DayBatch(NamedTuple):
    """A batch for L2."""

    x_static: Tensor  # [B, 12], and the extra features where there are any
    x_temporal: Tensor  # [B, H+1, 10]
    x_role: Tensor  # [B, 2]
    label: Tensor  # [B, 16]


class DayTable:
    """What L2 learns from."""

    def __init__(self, samples: Samples, device: torch.device) -> None:
        names = ("x_static", "extra", "x_temporal", "x_role", "label")
        _check_numbers(samples.macro, names, "macro")
        self.samples = samples
        self._store = Store({name: samples.macro[name] for name in names}, device)
        self.rows, self.device = self._store.rows, device

    def batch(self, index: Tensor) -> DayBatch:
        take = self._store.take
        x_static = torch.cat([take("x_static", index), take("extra", index)], 1)
        return DayBatch(x_static, take("x_temporal", index), take("x_role", index), take("label", index))


class DecisionBatch(NamedTuple):
    """A batch for L3."""

    inputs: L3Inputs
    labels: ActionLabels
    advantage: Tensor  # [B]; zeros without returns


class DecisionTable:
    """What L3 learns from. With `advantage` [micro], only decisions whose advantage is known are rows of the table."""

    def __init__(self, samples: Samples, device: torch.device, *, advantage: NDArray[np.float32] | None = None) -> None:
        micro = samples.micro
        _check_numbers(micro, ("baseline", "residual", "aux", "partner"), "micro")
        _check_numbers(samples.macro, ("goal",), "macro")
        self.samples, self.device = samples, device
        self.length = np.minimum(micro["history_length"].astype(np.int64), HISTORY)
        zeros = np.zeros(len(self.length), np.float32)
        known = np.ones(len(zeros), bool) if advantage is None else np.isfinite(advantage)
        self._chosen = None if known.all() else torch.from_numpy(np.flatnonzero(known)).to(device)
        self.advantage = zeros if advantage is None else advantage[known]
        columns = {
            "day": np.asarray(micro["macro"]),
            "length": self.length,
            "rule_op": rule_operators(samples),
            "end": (micro["history"] + micro["history_length"]).astype(np.int64),
            "advantage": zeros if advantage is None else advantage,
            **{name: micro[name].astype(np.int64) for name in ("op", "role", "time_label")},
            **{name: micro[name] for name in ("baseline", "residual", "time_valid", "time_open", "aux", "partner")},
        }
        self._store = Store(columns, device)
        self._goals = Store({"goal": samples.macro["goal"]}, device)
        offers = samples.tables["offers"]["row"]
        self._offers = Store({"row": offers if len(offers) else np.zeros((1, 4), np.float32)}, device)
        self.rows = int(known.sum())

    def _at(self, index: Tensor) -> Tensor:
        """Rows of the samples for rows of the table."""
        return index if self._chosen is None else self._chosen[index]

    def batch(self, index: Tensor, slots: int = HISTORY) -> DecisionBatch:
        """Some decisions with `slots` rows of history, at least one and as many as their longest."""
        take, index = self._store.take, self._at(index)
        back = torch.arange(slots, 0, -1, device=self.device)
        present = back <= take("length", index).unsqueeze(1)
        at = torch.where(present, take("end", index).unsqueeze(1) - back, 0)
        history = self._offers.take("row", at.flatten()).view(*at.shape, 4) * present.unsqueeze(2)
        inputs = L3Inputs(
            history, present, self._goals.take("goal", take("day", index)), take("role", index),
            take("baseline", index), take("aux", index), take("time_open", index), take("rule_op", index),
            take("partner", index),
        )  # fmt: skip
        labels = ActionLabels(
            take("op", index), take("residual", index), take("time_label", index), take("time_valid", index)
        )
        return DecisionBatch(inputs, labels, take("advantage", index))

    def by_length(self, index: Tensor) -> list[tuple[int, Tensor]]:
        """Groups of decisions with the history rows that each group needs; only on a CPU, where asking is free."""
        length = self.length[self._at(index).numpy()]
        groups = []
        for least, most in zip((0, *LENGTHS[:-1]), LENGTHS):
            rows = np.flatnonzero((length <= most) & (length > least) if least else length <= most)
            if len(rows):
                groups.append((max(1, int(length[rows].max())), index[torch.from_numpy(rows)]))
        return groups


def rule_operators(samples: Samples) -> NDArray[np.int64]:
    """[micro] what the acceptance rule of L1 would do with the offer on the table, given the day's goal."""
    micro = samples.micro
    rows = np.flatnonzero(micro["acceptable"])
    operators = np.full(len(micro["op"]), REJECT)
    if len(rows):
        last = samples.tables["offers"]["row"][micro["history"][rows] + micro["history_length"][rows] - 1]
        offer = Action(*last[:, :3].T.astype(np.float64))
        goal = samples.macro["goal"][micro["macro"][rows]].astype(np.float64)
        operators[rows[executor.good_price(offer, goal, micro["role"][rows] == 1)]] = ACCEPT
    return operators


class RoundBatch(NamedTuple):
    """A batch for L4; K is the largest number of threads in it."""

    threads: Tensor  # [B, K, 24]
    days: Tensor  # [B, K] int64
    roles: Tensor  # [B, K] int64
    context: Tensor  # [B, 30]
    mask: Tensor  # [B, K] bool
    teacher: Tensor  # [B, K]


class RoundTable:
    """What L4 learns from: joint decisions over at least one thread."""

    def __init__(self, samples: Samples, device: torch.device) -> None:
        from marlab.market.samples.extract import global_features

        _check_numbers(samples.micro, ("thread", "alpha"), "micro")
        self.samples, self.device = samples, device
        calls = np.flatnonzero(samples.calls["threads"] > 0)
        self.threads = samples.calls["threads"][calls].astype(np.int64)
        context = global_features(samples, calls)
        first = samples.calls["first"][calls]
        self._calls = Store({"first": first, "threads": self.threads, "context": context}, device)
        names = ("thread", "thread_day", "role", "alpha")
        self._micro = Store({name: samples.micro[name] for name in names}, device)
        self.rows, self.widest = len(calls), int(self.threads.max(initial=1))

    def batch(self, index: Tensor) -> RoundBatch:
        take = self._calls.take
        count = take("threads", index).unsqueeze(1)
        widest = self.widest if self.device.type != "cpu" else int(count.max())
        place = torch.arange(widest, device=self.device)
        mask = place < count
        at = torch.where(mask, take("first", index).unsqueeze(1) + place, 0)

        def threads(name: str) -> Tensor:
            values = self._micro.take(name, at.flatten())
            return values.view(*at.shape, *values.shape[1:])

        days, roles, teacher = threads("thread_day").long(), threads("role").long(), threads("alpha") * mask
        return RoundBatch(threads("thread"), days, roles, take("context", index), mask, teacher)


def _check_numbers(columns: Columns, names: Iterable[str], table: str) -> None:
    """Refuse data that would silently turn weights into NaN."""
    for name in names:
        values = columns[name]
        for start in range(0, len(values), CHUNK):
            bad = ~np.isfinite(values[start : start + CHUNK])
            if bad.any():
                row = start + int(np.argwhere(bad)[0][0])
                raise UserError(f"The samples hold a value that is not a number: column {table}.{name}, row {row}.")
