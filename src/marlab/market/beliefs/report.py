"""The tables of beliefs, as Markdown and as numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from marlab.lab.report import markdown
from marlab.lab.verdict import Sentence, say
from marlab.market.beliefs.calibration import Quality
from marlab.market.rules.beliefs import STRANGER, Observer

MORNINGS = (1, 3, 10, 30)
"""Mornings that tables by agent show: after so many days."""
WORTH_TELLING = 0.05
"""Types with a smaller share are not listed."""


def as_markdown(observer: Observer, found: Quality, worlds: int) -> str:
    """All tables."""
    return "\n".join(_sections(observer, found, worlds)) + "\n"


def _sections(observer: Observer, found: Quality, worlds: int) -> Iterator[str]:
    options = observer.options
    yield "# Beliefs about partners\n"
    yield (
        f"{len(observer.types)} types and the stranger, measured on {worlds} recorded worlds that were never learnt "
        f"from. An answer counts {options.temper:g}, {options.carry:.0%} of a belief is left on the next morning, no "
        f"type falls below {options.floor:g}.\n"
    )
    yield "## By day\n"
    yield markdown.table(
        ["days of talking", "probability of the true type", "true type is the likeliest", "log loss"],
        [[str(day), f"{own:.3f}", f"{hit:.3f}", f"{loss:.3f}"] for day, (own, hit, loss) in found.by_day.items()],
    )
    if found.foresight:
        yield "\n## Answers to offers (taken, countered, left): mean -log p by who foresees them\n"
        yield markdown.table(["who", "nats an answer"], [[who, f"{loss:.4f}"] for who, loss in found.foresight.items()])
    yield "\n## Reliability: the likeliest type on all mornings\n"
    bins = found.reliability
    yield markdown.table(
        ["probability from", "to", "mornings", "mean probability", "share true"],
        [
            [f"{low:.1f}", f"{high:.1f}", f"{int(n):,}", f"{sure:.3f}", f"{right:.3f}"]
            for low, high, n, sure, right in zip(bins.edges, bins.edges[1:], bins.count, bins.confidence, bins.accuracy)
            if n
        ],
    )
    yield f"\nExpected calibration error: {bins.error:.3f}.\n"
    yield "## Types: probability of the true one after so many days, and at the end who else\n"
    yield _table(found, found.by_type)
    if found.strangers:
        yield "\n## Agents without a type: probability of the stranger after so many days, and at the end who else\n"
        yield _table(found, found.strangers)


def _table(found: Quality, rows: dict[str, list[float]]) -> str:
    days = [day for day in MORNINGS if day < min(map(len, rows.values()))]
    return markdown.table(
        ["agent", *(str(day) for day in days), "end", "believed at the end"],
        [
            [name, *(f"{line[day]:.2f}" for day in days), f"{line[-1]:.2f}", _others(found.mistaken[name])]
            for name, line in rows.items()
        ],
    )


def _others(shares: dict[str, float]) -> str:
    told = sorted(((p, name) for name, p in shares.items() if p >= WORTH_TELLING), reverse=True)
    return ", ".join(f"{name} {p:.2f}" for p, name in told[:5])


def as_json(observer: Observer, found: Quality, worlds: int) -> dict[str, Any]:
    """The same as plain values."""
    plain = {
        name: getattr(found, name)
        for name in ("types", "by_day", "by_type", "strangers", "strange", "mistaken", "foresight")
    }
    bins = {
        name: [None if value != value else float(value) for value in getattr(found.reliability, name)]
        for name in ("edges", "confidence", "accuracy", "count")
    }
    return {"held_out_worlds": worlds, "options": asdict(observer.options), **plain, "reliability": bins}


def numbers(found: Quality) -> dict[str, Any]:
    """Results for run.json: means over all mornings after the first."""
    out: dict[str, Any] = {
        "probability of the true type": float(np.mean([np.mean(line[1:]) for line in found.by_type.values()])),
        "calibration error": found.reliability.error,
    }
    out |= {f"foresight, {who}": loss for who, loss in found.foresight.items()}
    for day, (own, hit, _) in found.by_day.items():
        out |= {f"probability of the true type, day {day}": own, f"true type is the likeliest, day {day}": hit}
    if found.strangers:
        out["strangers taken for strangers"] = float(np.mean([line[-1] for line in found.strangers.values()]))
        out["types taken for strangers"] = float(np.mean([found.mistaken[name][STRANGER] for name in found.by_type]))
    return out


def verdict(found: Quality) -> list[Sentence]:
    """What was found."""
    day = max(found.by_day)
    own, hit, _ = found.by_day[day]
    told = [
        say("market.believed", day=day, hit=hit, own=own, chance=1 / (1 + len(found.types)), types=len(found.types),
            error=found.reliability.error)
    ]  # fmt: skip
    if found.strangers:
        result = numbers(found)
        shares = {"share": result["strangers taken for strangers"], "types": result["types taken for strangers"]}
        told.append(say("market.believed_strangers", agents=len(found.strangers), **shares))
    return told
