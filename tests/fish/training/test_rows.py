"""Rows and metric names of an iteration."""

from __future__ import annotations

from marlab.fish.training.rows import metric_names
from marlab.fish.training.train import FishTrainer
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
    from marlab.fish.training.rows import CUSTOM

    return [*CUSTOM.values(), "episode_length", "avg_reward"]
