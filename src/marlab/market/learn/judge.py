"""What a training of layers came to: every measurement beside what needs no learning, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marlab.lab.stats import Measured, measured
from marlab.lab.verdict import Sentence, say, side

TRIVIAL = ("gap only", "zero and spot")
"""Goals that need no learning, as `evaluate_goals` names them."""


@dataclass(frozen=True)
class Learnt:
    """One measurement of a layer on worlds that it did not learn from, beside what needs no learning."""

    what: str
    own: Measured
    other: float
    trivial: str
    less_is_better: bool = True

    @property
    def share(self) -> float:
        """The network's value over the trivial one's."""
        return (self.own.number or 0.0) / self.other if self.other else math.nan

    @property
    def better(self) -> bool:
        """Whether the network beats the trivial predictor."""
        return self.share < 1 if self.less_is_better else self.share > 1


def learnt(results: Mapping[str, Any]) -> list[Learnt]:
    """The headline measurements of a training on the test worlds, or on validation worlds if there are no others."""
    split = "test" if any(name.endswith(", test") for name in results) else "val"

    def own(key: str) -> Measured:
        return measured(results[f"{key}, {split}"])

    rows = []
    for part, what in (("Q", "L2 quantities"), ("P", "L2 prices")):
        if f"L2 {part} RMSE, {split}" in results:
            others = {n: own(f"{n} {part} RMSE").number or 0.0 for n in TRIVIAL}
            best = min(others, key=lambda n: others[n])
            rows.append(Learnt(what, own(f"L2 {part} RMSE"), others[best], best))
    layer = "L3 after AWR" if f"L3 after AWR mae_q, {split}" in results else "L3"
    for part, what in (("q", "quantities"), ("p", "prices")):
        if f"{layer} mae_{part}, {split}" in results:
            value, ratio = own(f"{layer} mae_{part}"), own(f"{layer} mae_{part} over best trivial").number
            if ratio:
                other = (value.number or 0.0) / ratio
                rows.append(Learnt(f"{layer} {what}", value, other, "best of copy, baseline, majority"))
    if f"{layer} operator recall, {split}" in results:
        trivial = own("best trivial operator recall").number or 0.0
        rows.append(Learnt(f"{layer} answers right", own(f"{layer} operator recall"), trivial, "best trivial", False))
    return rows


def verdict(results: Mapping[str, Any]) -> list[Sentence]:
    """Did learning help, by how much, beside what; at most two sentences."""
    rows = learnt(results)
    errors = [row for row in rows if row.less_is_better]
    if not errors:
        return [say("market.not_measured")]
    better, first = sum(row.better for row in rows), errors[0]
    found = [
        say(
            "market.learnt" if better else "market.learnt_nothing", better=better, measured=len(rows), what=first.what,
            value=first.own.number, interval=(first.own.low, first.own.high), share=first.share, trivial=first.trivial,
        )
    ]  # fmt: skip
    answers = [row for row in rows if not row.less_is_better]
    return found + [say("market.answers", own=row.own.number, other=row.other) for row in answers]


def verdict_of_goals(report: Mapping[str, Any]) -> list[Sentence]:
    """The same for one evaluation of L2 (`evaluate.evaluate_goals`)."""
    sentences = []
    for part in ("Q", "P"):
        own, others = report["L2"][part], {name: report[name][part]["rmse"] for name in TRIVIAL}
        trivial = min(others, key=lambda name: others[name])
        where = side(own["rmse_interval"], others[trivial])
        key = f"market.l2_{where}" if part == "Q" else "market.l2_prices"
        told = {"value": own["rmse"], "interval": own["rmse_interval"], "trivial": trivial, "other": others[trivial]}
        sentences.append(say(key, **told))
    return sentences
