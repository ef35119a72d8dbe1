"""What a probe says, from plain arrays: survival, death steps, step-one deaths and their clusters, pre-roll, ranking.

Letters: E episodes, N fish, R step-one records (one per fish eaten at the first step). Death steps count from 1 and
are -1 for a survivor. Percentiles come in two kinds that must not be confused: `fish_death_p10` is taken over fish,
`episode_first_death_p10` over the first death of each episode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marlab.fish.sea.constants import EPISODE_STEPS, HORIZONS
from marlab.fish.starts.clusters import north_west_interval, north_west_share, north_west_share_exact, step_one_clusters

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


# --- survival and death steps -------------------------------------------------------------------------------


def survival_summary(final_alive: ArrayLike, min_survival: ArrayLike, fish: int) -> dict[str, float]:
    """Over episodes: final and lowest survival. `final_alive` [E] fish, `min_survival` [E] share."""
    final = np.asarray(final_alive, dtype=np.float64) / fish
    lowest = np.asarray(min_survival, dtype=np.float64)
    return {
        "episodes": len(final), "avg_final_survival_rate": float(final.mean()),
        "min_final_survival_rate": float(final.min()), "avg_min_survival_rate": float(lowest.mean()),
        "min_of_min_survival_rate": float(lowest.min()), "median_min_survival_rate": float(np.median(lowest)),
    }  # fmt: skip


def death_stats(death_steps: ArrayLike, horizon: int = EPISODE_STEPS) -> dict[str, float]:
    """Over all fish of all episodes [E, N]; a survivor counts as dead at the horizon."""
    raw = np.asarray(death_steps, dtype=np.int64)
    steps = np.where(raw < 0, horizon, raw).ravel()
    p10, p25, p75, p90 = (float(x) for x in np.percentile(steps, (10, 25, 75, 90)))
    return {
        "total_fish_samples": int(steps.size), "survival_fraction": float((steps >= horizon).mean()),
        "mean_death_step": float(steps.mean()), "median_death_step": float(np.median(steps)), "p10": p10,
        "fish_death_p10": p10, "p25": p25, "p75": p75, "p90": p90,
        "early_death_fraction_100": float((steps < 100).mean()),
        "early_death_fraction_150": float((steps < 150).mean()),
    }  # fmt: skip


def survival_at(death_steps: ArrayLike, horizons: Sequence[int] = HORIZONS) -> dict[str, float]:
    """Share of fish still alive after so many steps, so that runs of different episode length can be compared."""
    steps = np.asarray(death_steps, dtype=np.int64)
    return {f"survival_at_{h}": float(((steps < 0) | (steps > h)).mean()) for h in horizons}


def late_p10_of_counts(first_death_counts: ArrayLike, horizon: int = EPISODE_STEPS) -> float | None:
    """10th percentile over episodes of the first death, from counts of its step (index 0: nobody died).

    Step-one deaths are nearly all unavoidable and happen in more than every tenth episode, so a percentile that
    includes them is 1 for ever; episodes that begin with one are left out. Nobody dead counts as `horizon`.
    """
    counts = np.asarray(first_death_counts, dtype=np.int64).copy()
    nobody, counts[:2] = int(counts[0]), 0
    steps = np.concatenate([np.repeat(np.arange(len(counts)), counts), np.full(nobody, horizon)])
    return float(np.percentile(steps, 10)) if len(steps) else None


def saved_share(death_steps: ArrayLike, doomed: int) -> float:
    """Survivors as a share of the fish that were not doomed at step one."""
    steps = np.asarray(death_steps)
    return float((steps < 0).sum()) / max(steps.size - doomed, 1)


# --- step-one deaths ----------------------------------------------------------------------------------------


def step_one_metrics(velocity: ArrayLike, episode: ArrayLike, samples: int) -> dict[str, Any]:
    """All step-one numbers of a probe or of a training iteration. `samples` fish started; records [R, 2] and [R]."""
    clusters = step_one_clusters(velocity)
    count = len(np.asarray(velocity).reshape(-1, 2))
    interval = north_west_interval(velocity, episode)
    return {
        "step_one_death_count": count,
        "step_one_death_ratio": count / samples if samples else None,
        "step_one_top_share": clusters[0]["share"] if clusters else None,
        "step_one_ne_high_speed_share": north_west_share(clusters) if clusters else None,
        "step_one_ne_high_speed_share_exact": north_west_share_exact(velocity),
        "step_one_ne_high_speed_interval": list(interval) if interval else None,
    }


def step_one_by_type(counts: Mapping[str, int], fish: Mapping[str, int]) -> dict[str, dict[str, float | int | None]]:
    """Step-one deaths by the type of start (`ordinary`, `ne`, ...), as count, fish, ratio and share of all."""
    total = sum(counts.values())
    return {
        kind: {
            "count": counts.get(kind, 0),
            "fish": started,
            "ratio": counts.get(kind, 0) / started if started else None,
            "share": counts.get(kind, 0) / total if total else None,
        }
        for kind, started in fish.items()
    }


# --- pre-roll -----------------------------------------------------------------------------------------------

PRE_ROLL_FIELDS = (
    "spawn_radius", "spawn_angle_deg", "initial_heading_deg", "initial_speed", "final_heading_deg", "final_speed",
    "angle_jitter_deg", "speed_scale", "heading_bias_angle_deg",
)  # fmt: skip


def describe(values: ArrayLike) -> dict[str, float | int | None]:
    """count, mean, std, p10, p50, p90, min, max of the finite values."""
    x = np.asarray(values, dtype=np.float64).ravel()
    x = x[np.isfinite(x)]
    names = ("mean", "std", "p10", "p50", "p90", "min", "max")
    if not len(x):
        return {"count": 0, **dict.fromkeys(names)}
    numbers = (x.mean(), x.std(), *np.percentile(x, (10, 50, 90)), x.min(), x.max())
    return {"count": len(x), **{name: float(value) for name, value in zip(names, numbers)}}


def pre_roll_stats_summary(stats: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The `pre_roll_stats` of all episodes in numbers; lists inside an episode are pooled, None is left out."""
    pooled: dict[str, list[float]] = {name: [] for name in PRE_ROLL_FIELDS}
    for episode in stats:
        for name in PRE_ROLL_FIELDS:
            value = episode.get(name)
            pooled[name] += [] if value is None else list(value) if isinstance(value, Sequence) else [value]
    overrides = sum(bool(episode.get("prewarm_velocity_override")) for episode in stats)
    angles = np.mod(np.asarray(pooled["spawn_angle_deg"], dtype=np.float64), 360.0)
    speeds = np.asarray(pooled["initial_speed"], dtype=np.float64)
    # Without hard starts all speeds are 1.5 to the last few bits, so the bins cannot follow the data.
    speed_counts, speed_edges = np.histogram(speeds, bins=10, range=(0.0, max(5.0, float(speeds.max(initial=0.0)))))
    return {
        **{name: describe(values) for name, values in pooled.items()},
        "prewarm_override_count": overrides,
        "prewarm_override_ratio": overrides / len(stats) if stats else None,
        "spawn_angle_hist": np.histogram(angles, bins=12, range=(0.0, 360.0))[0].tolist(),
        "initial_speed_hist": {"counts": speed_counts.tolist(), "edges": speed_edges.tolist()},
    }


# --- choosing -----------------------------------------------------------------------------------------------


def passes_best_limits(record: Mapping[str, Any], max_step_one: int, max_early_death: float) -> bool:
    """Whether a probe record may be kept as a best checkpoint; a limit of 0 or less is off."""
    count_ok = max_step_one <= 0 or record["step_one_death_count"] <= max_step_one
    return count_ok and (max_early_death <= 0 or record["death_stats"]["early_death_fraction_100"] <= max_early_death)


def best_probe(
    records: Sequence[Mapping[str, Any]],
    max_step_one: int,
    max_early_death: float,
    rule: Literal["step_one", "survival"] = "step_one",
) -> Mapping[str, Any] | None:
    """The best record within the limits, or None.

    "step_one" (the original) takes the least (step-one count, early deaths, -average survival). The step-one count
    is mostly luck, so "survival" compares survival first: of the fish that can be saved, where that is known.
    """

    def key(record: Mapping[str, Any]) -> tuple[float, ...]:
        saved = record.get("saved_share") if rule == "survival" else None
        survival = -(record["summary"]["avg_final_survival_rate"] if saved is None else saved)
        early = record["death_stats"]["early_death_fraction_100"]
        count = record["step_one_death_count"]
        return (count, early, survival) if rule == "step_one" else (survival, early, count)

    allowed = [r for r in records if passes_best_limits(r, max_step_one, max_early_death)]
    return min(allowed, key=key) if allowed else None
