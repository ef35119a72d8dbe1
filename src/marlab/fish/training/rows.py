"""One iteration as one row of statistics, and the same numbers under their TensorBoard names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marlab.fish.measure.stats import late_p10_of_counts, step_one_by_type
from marlab.fish.schedule.curriculum import IterationSettings
from marlab.fish.starts.clusters import clusters_of_counts, north_west_share
from marlab.fish.starts.queue import StartQueue

CUSTOM = {
    # name in TensorBoard under custom/: name in the row
    "avg_survival_rate": "survival_rate",
    "step_one_death_count": "step_one_deaths",
    "tail_forced_resets": "tail_forced_resets",
} | {
    name: name
    for name in (
        "final_num_alive", "avg_num_alive", "first_death_step", "first_death_p10", "late_first_death_p10",
        "first_death_sample_size", "density_penalty_coef", "entropy_coef", "escape_boost_speed",
        "step_one_death_ratio", "step_one_top_share", "step_one_ne_high_speed_share", "prewarm_override_ratio",
        "prewarm_override_hits", "prewarm_override_episodes", "prewarm_override_ratio_256", "tail_stage_index",
        "tail_stage_progress", "tail_queue_remaining", "tail_queue_remaining_ratio", "tail_prewarm_injections",
        "tail_prewarm_injections_total", "tail_stage_warn_active",
    )
}  # fmt: skip


def iteration_row(
    now: IterationSettings, counted: Mapping[str, Any], queue: StartQueue, shown: Mapping[str, Any]
) -> dict[str, Any]:
    """The row of statistics.

    counted: what the world counted in this iteration; shown: the statistics window, the same or (compat) an
    earlier iteration's. A value that nobody measured in the window is None, never 0.
    """
    fish = now.phase.num_fish
    lifetime = shown["avg_survival_rate"]
    return {
        "iteration": now.iteration,
        "phase": now.phase.index,
        "num_fish": fish,
        "episodes": counted["episodes"],
        "survival_rate": shown["survival_rate"],
        "survival_at_100": shown["survival_at_100"],
        "survival_at_224": shown["survival_at_224"],
        "survival_at_500": shown["survival_at_500"],
        "avg_reward": shown["episode_return"],
        "episode_length": shown["episode_length"],
        "avg_num_alive": None if lifetime is None else lifetime * fish,
        "final_num_alive": shown["final_num_alive"],
        "first_death_step": shown["first_death_step"],
        "first_death_p10": shown["first_death_p10"],
        "late_first_death_p10": late_p10_of_counts(shown["first_death_histogram"]),
        "first_death_sample_size": shown["first_death_sample_size"],
        "density_penalty_coef": now.density_penalty,
        "entropy_coef": now.entropy_coef,
        "learning_rate": now.learning_rate,
        "escape_boost_speed": now.escape_boost,
        "step_one_deaths": counted["step_one_deaths"],
        "step_one_death_ratio": counted["step_one_death_ratio"],
        **_step_one_shares(counted),
        "step_one_by_type": _by_type(counted, queue),
        "reward_shares": counted["reward_shares"],
        "tail_forced_resets": counted["forced_resets"],
        **queue.metrics(),
    }


def metric_names(
    row: Mapping[str, Any], learned: Mapping[str, float], probe: Mapping[str, Any] | None, seconds: Mapping[str, float]
) -> dict[str, Any]:
    """Row, learner, probe and timing as metrics; what is None is left out."""
    work = sum(v for k, v in seconds.items() if k != "probe")
    names: dict[str, Any] = {f"custom/{k}": row[v] for k, v in CUSTOM.items()}
    names |= {"episode/length": row["episode_length"], "episode/reward": row["avg_reward"], **learned}
    names |= {f"time/{k}": v for k, v in seconds.items()}
    names["time/steps_per_second"] = learned.get("ppo/samples", 0.0) / work if work > 0 else None
    if probe is not None:
        names |= {f"multi_eval/{k}": v for k, v in probe["summary"].items()}
        names |= {f"multi_eval_death/{k}": v for k, v in probe["death_stats"].items()}
        more = ("step_one_death_ratio", "step_one_top_share", "step_one_ne_high_speed_share", "doomed_ratio")
        names |= {f"multi_eval/{k}": probe[k] for k in (*more, "saved_share")}
        if "penalty_gate" in probe:
            names |= {"gate/stage": probe["penalty_gate"]["stage"], "gate/event": probe["penalty_gate"]["event"]}
    return {k: v for k, v in names.items() if v is not None}


def _step_one_shares(counted: Mapping[str, Any]) -> dict[str, float | None]:
    """Shares of the step-one deaths of *all* training resets: the fullest bin, and the fast north-western ones."""
    if not counted["step_one_deaths"]:
        return {"step_one_top_share": None, "step_one_ne_high_speed_share": None}
    clusters = clusters_of_counts(counted["step_one_bins"])
    return {
        "step_one_top_share": float(clusters[0]["share"]),
        "step_one_ne_high_speed_share": north_west_share(clusters),
    }


def _by_type(counted: Mapping[str, Any], queue: StartQueue) -> dict[str, Any]:
    deaths = queue.by_type(counted["step_one_deaths_by_stage"])
    return step_one_by_type(deaths, queue.by_type(counted["step_one_fish_by_stage"]))
