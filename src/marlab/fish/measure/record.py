"""One probe as one JSON object: a line of `eval_multi_history.jsonl`, and what the gate reads from it.

Letters: E episodes, N fish.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marlab.fish.measure import stats
from marlab.fish.schedule.gate import ProbeOutcome


@dataclass(frozen=True)
class ProbeArrays:
    """What the simulator knows after all episodes of a probe have ended."""

    seeds: Sequence[int]  # [E]
    death_steps: NDArray[Any]  # [E, N] from 1, -1 for survivors
    total_reward: NDArray[Any]  # [E] sum over steps of the mean reward of all N fish
    steps: NDArray[Any]  # [E] length of the episode
    start_position: NDArray[Any]  # [E, 2] predator after reset, m
    start_velocity: NDArray[Any]  # [E, 2] m/s
    step_one_position: NDArray[Any]  # [E, 2] predator after the first step
    step_one_velocity: NDArray[Any]  # [E, 2]
    step_one_fish: NDArray[Any]  # [E, N, 2] fish after the first step
    pre_roll_stats: Sequence[Mapping[str, Any]] = field(default=())  # [E]
    doomed: NDArray[Any] | None = None  # [E] fish that no action saves at step 1; None: not computed

    @property
    def final_alive(self) -> NDArray[np.int64]:
        return (np.asarray(self.death_steps) < 0).sum(axis=1)


def step_one_records(probe: ProbeArrays) -> list[dict[str, Any]]:
    """One record per fish eaten at the first step, in order of episode and fish."""
    return [
        {
            "episode": int(e),
            "fish_idx": int(f),
            "predator_index": 0,
            "fish_position": _floats(probe.step_one_fish[e, f]),
            "predator_position": _floats(probe.step_one_position[e]),
            "predator_velocity": _floats(probe.step_one_velocity[e]),
            "timestep": 1,
        }
        for e, f in zip(*np.nonzero(np.asarray(probe.death_steps) == 1))
    ]


def probe_record(
    probe: ProbeArrays, *, iteration: int, timestamp: str, density_penalty_coef: float, escape_boost_speed: float
) -> dict[str, Any]:
    """Everything a probe reports; the gate's record and file paths are added by the trainer."""
    deaths = np.asarray(probe.death_steps)
    episodes, fish = deaths.shape
    survival = probe.final_alive / fish  # nobody comes back to life, so the last survival is also the lowest
    records = step_one_records(probe)
    velocity = np.array([r["predator_velocity"] for r in records]).reshape(-1, 2)
    doomed = None if probe.doomed is None else int(np.sum(probe.doomed))
    return {
        "iteration": iteration, "timestamp": timestamp,
        "summary": stats.survival_summary(probe.final_alive, survival, fish),
        "death_stats": stats.death_stats(deaths), **stats.survival_at(deaths),
        "density_penalty_coef": density_penalty_coef, "escape_boost_speed": escape_boost_speed,
        **stats.step_one_metrics(velocity, np.array([r["episode"] for r in records]), deaths.size),
        "doomed_count": doomed, "doomed_ratio": None if doomed is None else doomed / deaths.size,
        "saved_share": None if doomed is None else stats.saved_share(deaths, doomed),
        "episode_seeds": [int(s) for s in probe.seeds], "multi_eval_num_fish": fish,
        "multi_eval_episodes": episodes,
        "episodes": [_episode(probe, e, float(survival[e])) for e in range(episodes)], "step_one_deaths": records,
        "step_one_clusters": stats.step_one_clusters(velocity),
        "pre_roll_stats_summary": stats.pre_roll_stats_summary(probe.pre_roll_stats),
    }  # fmt: skip


def outcome_of(record: Mapping[str, Any], tail_type: str | None = None) -> ProbeOutcome:
    """The part of a probe record that the gate judges."""
    return ProbeOutcome(
        samples=record["multi_eval_num_fish"] * record["multi_eval_episodes"],
        step_one_count=record["step_one_death_count"],
        early_death_fraction=record["death_stats"]["early_death_fraction_100"],
        fish_death_p10=record["death_stats"]["p10"],
        min_final_survival=record["summary"]["min_final_survival_rate"],
        avg_final_survival=record["summary"]["avg_final_survival_rate"],
        doomed=record.get("doomed_count") or 0.0,
        tail_type=tail_type,
    )


def _episode(probe: ProbeArrays, e: int, survival: float) -> dict[str, Any]:
    """The episode in brief, with the predator's start so that `marlab fish starts` can make it a hard start."""
    total, steps = float(probe.total_reward[e]), int(probe.steps[e])
    return {
        "episode": e, "seed": int(probe.seeds[e]), "avg_reward": total / max(steps, 1), "total_reward": total,
        "steps": steps, "final_num_alive": int(probe.final_alive[e]), "min_survival_rate": survival,
        "step_one_count": int((np.asarray(probe.death_steps)[e] == 1).sum()),
        "predator_position": _floats(probe.start_position[e]),
        "predator_velocity": _floats(probe.start_velocity[e]),
    }  # fmt: skip


def _floats(values: NDArray[Any]) -> list[float]:
    return [float(v) for v in values]
