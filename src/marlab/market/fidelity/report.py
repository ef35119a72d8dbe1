"""The two markets side by side: by how much every seller differs from the rule, and whether the order is the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marlab.market.fidelity.plan import POSITIONS, RULE, Seat

Array = NDArray[np.float64]
CLEAR = 2.0
"""A difference of so many standard errors is one."""
MOST_RATIO = 2.0
"""The vector market may show at most this many times a real difference, and at least one part in so many."""
LEAST_CORRELATION = 0.85
"""Spearman's correlation of the sellers' differences in both markets."""


class Mean(NamedTuple):
    """A mean difference to the rule and its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:+.3f} ± {self.error:.3f}"

    @property
    def clear(self) -> bool:
        """Beyond two standard errors."""
        return abs(self.value) > CLEAR * self.error


class Line(NamedTuple):
    """One seller at one position."""

    position: str
    seller: str
    real: Mean
    vector: Mean

    @property
    def ratio(self) -> float:
        """The vector market's difference over the real one."""
        return self.vector.value / self.real.value if self.real.value else float("nan")

    @property
    def holds(self) -> bool | None:
        """Same sign and about the same size; None: the real difference is not clear enough to ask."""
        return None if not self.real.clear else 1 / MOST_RATIO <= self.ratio <= MOST_RATIO


class Fidelity(NamedTuple):
    """What was found."""

    lines: list[Line]
    seats: dict[str, int]  # by position
    markets: int
    repeats: int
    correlation: dict[str, float]  # Spearman's, by position

    @property
    def asked(self) -> list[Line]:
        """Sellers whose real difference is clear."""
        return [line for line in self.lines if line.holds is not None]

    @property
    def ranks_alike(self) -> bool:
        """Whether the gate is passed at both positions."""
        right = all(line.holds for line in self.asked)
        return right and all(value >= LEAST_CORRELATION for value in self.correlation.values())


def compared(names: Sequence[str], seats: Sequence[Seat], real: Array, vector: Array) -> Fidelity:
    """Scores `real` [sellers, seats] and `vector` [sellers, seats, repeats]; nan where nothing was played.

    Only seats that all sellers played in both markets count. Some may have been played more often than others.
    """
    played = np.isfinite(vector)
    repeats = played.sum(2)  # [sellers, seats]
    there = np.isfinite(real).all(0) & (repeats > 0).all(0)
    usual = np.where(played, vector, 0.0).sum(2) / np.maximum(1, repeats)
    ours, theirs = real - real[0], usual - usual[0]
    markets = np.array([seat.config for seat in seats])
    lines, counts, correlation = [], {}, {}
    for position in POSITIONS:
        here = there & np.array([seat.position == position for seat in seats])
        counts[position] = int(here.sum())
        if len(np.unique(markets[here])) < 2:
            continue
        mine = [
            Line(position, name, mean(ours[i, here], markets[here]), mean(theirs[i, here], markets[here]))
            for i, name in enumerate(names)
            if name != RULE
        ]
        lines += mine
        correlation[position] = spearman(
            [0.0, *(line.real.value for line in mine)], [0.0, *(line.vector.value for line in mine)]
        )
    least = int(repeats[:, there].min()) if there.any() else 0
    return Fidelity(lines, counts, len(np.unique(markets[there])), least, correlation)


def mean(values: Array, groups: NDArray[np.int64]) -> Mean:
    """The mean with a standard error that counts seats of one market together: they share what is drawn for it."""
    centre = float(values.mean())
    sums = np.array([(values[groups == group] - centre).sum() for group in np.unique(groups)])
    more = len(sums) / (len(sums) - 1)
    return Mean(centre, float(np.sqrt(more * (sums**2).sum()) / len(values)))


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    """Correlation of ranks; equal values share theirs."""
    ranks = []
    for values in (np.asarray(a), np.asarray(b)):
        below, equal = (values[:, None] > values).sum(1), (values[:, None] == values).sum(1)
        ranks.append(below + (equal - 1) / 2)
    if np.ptp(ranks[0]) == 0 or np.ptp(ranks[1]) == 0:
        return 0.0
    return float(np.corrcoef(*ranks)[0, 1])


def as_json(found: Fidelity) -> dict[str, Any]:
    """Plain values."""
    rows = [
        {
            "position": line.position, "seller": line.seller, "real": line.real.value, "real_error": line.real.error,
            "vector": line.vector.value, "vector_error": line.vector.error, "holds": line.holds,
        }
        for line in found.lines
    ]  # fmt: skip
    return {
        "rows": rows,
        "seats": found.seats,
        "markets": found.markets,
        "repeats": found.repeats,
        "correlation": found.correlation,
        "ranks_alike": found.ranks_alike,
    }


def as_markdown(found: Fidelity) -> str:
    """The table."""
    told = {None: "not clear", True: "yes", False: "**no**"}
    lines = [
        "| position | seller | simulator | vector market | ratio | holds |",
        "|---|---|---|---|---|---|",
        *(
            f"| {line.position} | {line.seller} | {line.real} | {line.vector} | {line.ratio:.2f} | {told[line.holds]} |"
            for line in found.lines
        ),
        "",
        "Scores less the rule's in the same seat, ± one standard error (seats of a market together). holds: a",
        "difference beyond two standard errors has the same sign and half to twice the size in the vector market.",
        "",
        *(
            f"Spearman, {position}: {value:.2f} ({found.seats[position]} seats)"
            for position, value in found.correlation.items()
        ),
    ]
    return "\n".join(lines) + "\n"
