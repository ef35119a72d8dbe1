"""What a training leaves behind: files, rows, tags and films."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from marlab.fish.training.outputs import metric_names
from marlab.fish.training.train import FishTrainer
from marlab.lab.report.facts import last_metrics
from marlab.lab.runs.judged import read_cases
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.records import read_run
from tests.fish.cases import SMALL


def test_metrics_leave_out_what_was_not_measured() -> None:
    metrics = FishTrainer(SMALL).iterate()
    assert metrics["ppo/samples"] > 0 and metrics["custom/density_penalty_coef"] == 0.0
    assert None not in metrics.values() and not any(name.startswith("multi_eval/") for name in metrics)


def test_speed_counts_samples_over_work_without_probes() -> None:
    row = dict.fromkeys(_row_names())
    made = metric_names(row, {"ppo/samples": 100.0}, None, {"world": 1.0, "learning": 1.0, "probe": 9.0})
    assert made["time/steps_per_second"] == 50.0 and made["time/probe"] == 9.0
    assert "custom/avg_survival_rate" not in made


def _row_names() -> list[str]:
    from marlab.fish.training.outputs import CUSTOM

    return [*CUSTOM.values(), "episode_length", "avg_reward"]


pytestmark = pytest.mark.long  # they share one whole training, with figures, films and its evaluation


def test_all_files_of_a_run_exist(finished: Path) -> None:
    info = read_run(finished)
    assert info.status == "finished"
    assert [s["name"] for s in info.stages] == ["phase 1: 4 fish", "phase 2: 6 fish"]
    assert info.judged.key(info.results) == "best model: survival" and info.judged.metric in last_metrics(info)
    cases = read_cases(finished)["final model: survival"]  # seed -> arena -> survival
    assert list(cases) == ["0"] and len(cases["0"]) == 3
    assert sum(cases["0"].values()) / 3 == pytest.approx(info.results["final model: survival"]["value"])
    for name in (
        "config.json", "metrics.jsonl", "stats.jsonl", "stats.parquet", "schedule_trace.json",
        "eval_multi_history.jsonl", "penalty_stage_debug.jsonl", "pre_roll_stats.jsonl", "step_one_clusters.jsonl",
        "step_one_worst_seeds.json", "step_one_stage_summary.json", "log.txt",
    ):  # fmt: skip
        assert (finished / name).stat().st_size > 0, name
    figures = {p.name.removeprefix("small_") for p in (finished / "figures").glob("*.png")}
    for name in ("survival", "first_death", "penalty_vs_first_death", "penalty_vs_entropy", "multi_eval_timeline",
                 "step_one_heading_polar", "iter004_death_hist", "iter008_death_hist", "step_one_by_type"):  # fmt: skip
        assert f"{name}.png" in figures
    films = sorted(p.name for p in (finished / "media").iterdir())
    assert "small_curve.gif" in films
    assert sum(name.startswith("small_iter008_tail_rank0") for name in films) == 1
    assert sum(p.name == "multi_fish_eval.mp4" for p in (finished / "eval").rglob("*")) >= 1


def test_one_row_per_iteration_from_one_on(finished: Path) -> None:
    rows = read_metrics(finished / "stats.jsonl")
    assert [r["iteration"] for r in rows] == list(range(1, 9))
    assert pq.read_table(finished / "stats.parquet")["iteration"].to_pylist() == list(range(1, 9))
    assert [r["num_fish"] for r in rows] == [4] * 3 + [6] * 5


def test_tensorboard_has_every_tag(finished: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(finished / "tb"))
    events.Reload()
    tags = set(events.Tags()["scalars"])
    for tag in (
        "episode/length", "episode/reward", "time/steps_per_second", "ppo/approx_kl", "ppo/clip_fraction",
        "ppo/explained_variance", "ppo/learning_rate", "ppo/loss", "ppo/policy_loss",
        "ppo/value_loss", "custom/avg_survival_rate", "custom/final_num_alive", "custom/avg_num_alive",
        "custom/density_penalty_coef", "custom/entropy_coef", "custom/escape_boost_speed",
        "custom/step_one_death_count", "custom/prewarm_override_ratio", "custom/tail_stage_index",
        "custom/tail_queue_remaining", "multi_eval/avg_final_survival_rate", "multi_eval_death/p10",
    ):  # fmt: skip
        assert tag in tags, tag


def test_a_film_shows_exactly_the_probed_episode(finished: Path) -> None:
    probe = read_metrics(finished / "eval_multi_history.jsonl")[-1]
    [film] = probe["tail_replays"]
    worst = min(e["final_num_alive"] for e in probe["episodes"])
    assert film["final_num_alive"] == worst == probe["episodes"][film["episode"]]["final_num_alive"]
    assert film["frames"] == 21 and (finished / film["path"]).stat().st_size > 1000
