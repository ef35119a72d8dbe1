"""What a fish training writes as it goes: a row of statistics per iteration, records, and films of probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from marlab.fish.measure.config import PROBES
from marlab.fish.measure.plots import plot_death_histogram
from marlab.fish.measure.probe import film_worst
from marlab.fish.measure.record import ProbeArrays
from marlab.fish.measure.stats import late_p10_of_counts, step_one_by_type
from marlab.fish.schedule.curriculum import IterationSettings
from marlab.fish.sea.dynamics import SeaState
from marlab.fish.starts.clusters import clusters_of_counts, north_west_share
from marlab.fish.starts.queue import StartQueue
from marlab.fish.training.config import FishTrainConfig
from marlab.lab.film import can_film
from marlab.lab.runs.metrics import MetricsWriter
from marlab.lab.runs.run import Run

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
        "iteration": now.iteration, "phase": now.phase.index, "num_fish": fish, "episodes": counted["episodes"],
        "survival_rate": shown["survival_rate"], "survival_at_100": shown["survival_at_100"],
        "survival_at_224": shown["survival_at_224"], "survival_at_500": shown["survival_at_500"],
        "avg_reward": shown["episode_return"], "episode_length": shown["episode_length"],
        "avg_num_alive": None if lifetime is None else lifetime * fish, "final_num_alive": shown["final_num_alive"],
        "first_death_step": shown["first_death_step"], "first_death_p10": shown["first_death_p10"],
        "late_first_death_p10": late_p10_of_counts(shown["first_death_histogram"]),
        "first_death_sample_size": shown["first_death_sample_size"], "density_penalty_coef": now.density_penalty,
        "entropy_coef": now.entropy_coef, "learning_rate": now.learning_rate,
        "escape_boost_speed": now.escape_boost, "step_one_deaths": counted["step_one_deaths"],
        "step_one_death_ratio": counted["step_one_death_ratio"], **_step_one_shares(counted),
        "step_one_by_type": _by_type(counted, queue), "reward_shares": counted["reward_shares"],
        "tail_forced_resets": counted["forced_resets"], **queue.metrics(),
    }  # fmt: skip


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


STATS = "stats.jsonl"
GATE, PRE_ROLL, CLUSTERS, EVENTS = (
    "penalty_stage_debug.jsonl", "pre_roll_stats.jsonl", "step_one_clusters.jsonl", "events.jsonl",
)  # fmt: skip


class FishOutputs:
    """Writes as the training goes; every record carries its iteration as `step`, so resuming supersedes it."""

    def __init__(self, run: Run, config: FishTrainConfig) -> None:
        self.run, self.config = run, config
        self._writers: dict[str, MetricsWriter] = {}
        self._resume_step: int | None = None

    def resume_from(self, step: int) -> None:
        """Records after `step` will be written again."""
        self._resume_step = step

    def _write(self, file: str, step: int, record: Mapping[str, Any]) -> None:
        if file not in self._writers:
            self._writers[file] = MetricsWriter(self.run.path / file, resume_step=self._resume_step)
        self._writers[file].log(step, record)

    # --- while training -------------------------------------------------------------------------------------

    def row(self, row: Mapping[str, Any]) -> None:
        self._write(STATS, row["iteration"], row)
        shown = {k: row[k] for k in ("survival_rate", "final_num_alive", "avg_reward", "episode_length")}
        if None in shown.values():
            self.run.log(f"iter={row['iteration']:03d} no episode ended")
            return
        self.run.log(
            f"iter={row['iteration']:03d} sr={100 * row['survival_rate']:.2f}% "
            f"final_alive={row['final_num_alive']:.2f} reward={row['avg_reward']:7.2f} "
            f"steps={row['episode_length']:6.1f} penalty={row['density_penalty_coef']:g} "
            f"entropy={row['entropy_coef']:g} boost={row['escape_boost_speed']:g}"
        )

    def events(self, events: Sequence[Mapping[str, Any]]) -> None:
        for event in events:
            self._write(EVENTS, event["iteration"], event)
            self.run.log(" ".join(f"{k}={v}" for k, v in event.items()))

    def probe(self, record: dict[str, Any], arrays: ProbeArrays, path: list[SeaState] | None) -> None:
        """The probe's records, its histogram, and films of its worst episodes."""
        iteration, name = record["iteration"], self.run.path.name
        histogram = self.run.figure(f"{name}_iter{iteration:03d}_death_hist.png")
        plot_death_histogram(arrays.death_steps, histogram, f"When fish die, probe of iteration {iteration}")
        record["death_hist_path"] = histogram.relative_to(self.run.path).as_posix()
        if path is not None:
            record["tail_replays"] = self._film_worst(record, arrays, path)
        self._write(PROBES, iteration, record)
        self._write(PRE_ROLL, iteration, {"pre_roll_stats": list(arrays.pre_roll_stats)})
        self._write(CLUSTERS, iteration, {"clusters": record["step_one_clusters"]})
        summary = record["summary"]
        self.run.log(
            f"probe iteration={iteration} avg_final={summary['avg_final_survival_rate']:.4f} "
            f"min_final={summary['min_final_survival_rate']:.4f} step_one={record['step_one_death_count']}"
        )
        if "penalty_gate" in record:
            gate = record["penalty_gate"]
            self._write(GATE, iteration, gate)
            fields = ("event", "iteration", "stage", "phase_limit", "freeze_until", "reason")
            self.run.log("penalty_gate " + " ".join(f"{k}={gate[k]}" for k in fields))

    def _film_worst(self, record: Mapping[str, Any], arrays: ProbeArrays, path: list[SeaState]) -> list[dict[str, Any]]:
        if not can_film():
            self.run.log("no film: imageio-ffmpeg is not installed")
            return []
        config, stem = self.config.measure, f"{self.run.path.name}_iter{record['iteration']:03d}"
        films = film_worst(
            arrays, path, config.tail_replay_count,
            lambda rank, episode: self.run.media(f"{stem}_tail_rank{rank}_ep{episode}.mp4"),
            fps=config.video_fps, max_steps=config.video_max_steps,
        )  # fmt: skip
        return [
            {"rank": film.rank, "episode": film.episode, "seed": record["episodes"][film.episode]["seed"],
             "frames": film.frames, "final_num_alive": int(arrays.final_alive[film.episode]),
             "path": film.file.relative_to(self.run.path).as_posix()}
            for film in films
        ]  # fmt: skip

    def flush(self) -> None:
        """Everything to the disk: others read it now."""
        for writer in self._writers.values():
            writer.flush()
