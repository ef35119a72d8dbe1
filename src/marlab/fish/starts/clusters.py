"""Step-one deaths by how the predator moved: bins of heading and speed, and the share that came fast from one side.

The metric `step_one_ne_high_speed_share` keeps the name that the original's records gave it, but what it counts are
headings of 90 to 150 degrees: north to *north-west* on the screen.

Letter: R step-one records, one per fish eaten at the first step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marlab.fish.sea.constants import HEADING_BIN, SPEED_BIN
from marlab.lab.stats import wilson

Floats = NDArray[np.float64]

NORTH_WEST = (90.0, 150.0)  # degrees, counter-clockwise from east
FAST = 1.8  # m/s


def headings(velocity: ArrayLike) -> tuple[Floats, Floats]:
    """Heading in degrees (0 to 360) and speed of velocities [R, 2]."""
    v = np.asarray(velocity, dtype=np.float64).reshape(-1, 2)
    return np.degrees(np.arctan2(v[:, 1], v[:, 0])) % 360.0, np.linalg.norm(v, axis=1)


def cluster_bins(velocity: ArrayLike) -> list[tuple[int, int]]:
    """(heading bin, speed bin) of each record [R, 2]."""
    angle, speed = headings(velocity)
    whole = np.floor(np.stack([angle / HEADING_BIN, speed / SPEED_BIN]) + 1e-9).astype(int)
    return [(int(a) % round(360 / HEADING_BIN), int(s)) for a, s in whole.T]


def step_one_clusters(velocity: ArrayLike) -> list[dict[str, float | int]]:
    """Predator velocities of the records [R, 2] on a grid of heading and speed, most frequent first."""
    counts: dict[tuple[int, int], int] = {}
    for key in cluster_bins(velocity):
        counts[key] = counts.get(key, 0) + 1
    return _clusters(counts)


def clusters_of_counts(counts: ArrayLike) -> list[dict[str, float | int]]:
    """The same from ready counts [heading bins, speed bins], as the training world keeps them."""
    table = np.asarray(counts, dtype=np.int64)
    return _clusters({(int(a), int(s)): int(table[a, s]) for a, s in zip(*np.nonzero(table))})


def _clusters(counts: Mapping[tuple[int, int], int]) -> list[dict[str, float | int]]:
    total = sum(counts.values())
    return [
        {
            "angle_deg_start": a * HEADING_BIN,
            "angle_deg_end": (a + 1) * HEADING_BIN,
            "speed_bin_start": round(s * SPEED_BIN, 6),
            "speed_bin_end": round((s + 1) * SPEED_BIN, 6),
            "count": n,
            "share": n / total,
        }
        for (a, s), n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def north_west_share(clusters: Sequence[Mapping[str, Any]]) -> float:
    """Share of the bins that overlap 90-150 degrees and have an edge at 1.8 m/s or more.

    On the 0.4 m/s grid that means speeds from 1.6 m/s, and 90-150 degrees is north to north-west on the screen.
    """
    return float(
        sum(
            c["share"]
            for c in clusters
            if c["angle_deg_start"] < NORTH_WEST[1]
            and c["angle_deg_end"] > NORTH_WEST[0]
            and max(c["speed_bin_start"], c["speed_bin_end"]) >= FAST
        )
    )


def north_west_share_exact(velocity: ArrayLike) -> float | None:
    """The same share from the raw velocities [R, 2], with the threshold at exactly 1.8 m/s; None without records."""
    inside = _fast_north_west(velocity)
    return float(inside.mean()) if len(inside) else None


def north_west_interval(velocity: ArrayLike, episode: ArrayLike, level: float = 0.95) -> tuple[float, float] | None:
    """Interval of the exact share. `episode` [R] is the episode of each record.

    All records of an episode share one predator, so they count as one draw with a weight: the sample size is
    Kish's (sum b)^2 / sum b^2 over the b records of each episode, not the number of records.
    """
    inside = _fast_north_west(velocity)
    if not len(inside):
        return None
    weight = np.unique(np.asarray(episode), return_counts=True)[1].astype(np.float64)
    size = float(weight.sum() ** 2 / (weight**2).sum())
    return wilson(float(inside.mean()) * size, size, level)


def _fast_north_west(velocity: ArrayLike) -> NDArray[np.bool_]:
    angle, speed = headings(velocity)
    return (angle >= NORTH_WEST[0]) & (angle < NORTH_WEST[1]) & (speed >= FAST)
