import json
from typing import Any

import numpy as np
import pytest

from marlab.fish.measure.record import ProbeArrays, outcome_of, probe_record, step_one_records


def arrays(**change: Any) -> ProbeArrays:
    """Two episodes of four fish: 0 loses two fish at step one and one later, 1 loses one at step one."""
    values: dict[str, Any] = {
        "seeds": [11, 12],
        "death_steps": np.array([[1, -1, 1, 50], [-1, -1, 1, -1]]),
        "total_reward": np.array([100.0, 400.0]),
        "steps": np.array([500, 500]),
        "start_position": np.array([[0.0, 0.0], [1.0, 0.0]]),
        "start_velocity": np.array([[1.0, 0.0], [0.0, -1.0]]),
        "step_one_position": np.array([[0.1, 0.005], [1.0, -0.095]]),
        "step_one_velocity": np.array([[1.0, 0.05], [0.0, -0.95]]),
        "step_one_fish": np.arange(16.0).reshape(2, 4, 2),
        "doomed": np.array([2, 0]),
    }
    return ProbeArrays(**{**values, **change})


def made(**change: Any) -> dict[str, Any]:
    fixed = {"iteration": 16, "timestamp": "t", "density_penalty_coef": 0.05, "escape_boost_speed": 0.8}
    return probe_record(arrays(**change), **fixed)  # type: ignore[arg-type]


def test_record_holds_every_field_as_plain_json() -> None:
    record = json.loads(json.dumps(made(), allow_nan=False))
    for name in (
        "iteration", "timestamp", "summary", "death_stats", "density_penalty_coef", "escape_boost_speed",
        "step_one_death_count", "step_one_death_ratio", "episode_seeds", "multi_eval_num_fish", "multi_eval_episodes",
        "step_one_deaths", "step_one_clusters", "pre_roll_stats_summary", "step_one_top_share",
        "step_one_ne_high_speed_share", "step_one_ne_high_speed_share_exact", "step_one_ne_high_speed_interval",
    ):  # fmt: skip
        assert name in record
    assert (record["step_one_death_count"], record["step_one_death_ratio"]) == (3, 3 / 8)
    assert record["summary"]["avg_final_survival_rate"] == 0.5
    assert record["summary"]["min_final_survival_rate"] == 0.25
    assert (record["doomed_count"], record["doomed_ratio"], record["saved_share"]) == (2, 0.25, pytest.approx(4 / 6))
    assert record["episodes"][0] == {
        "episode": 0, "seed": 11, "avg_reward": 0.2, "total_reward": 100.0, "steps": 500, "final_num_alive": 1,
        "min_survival_rate": 0.25, "step_one_count": 2, "predator_position": [0.0, 0.0],
        "predator_velocity": [1.0, 0.0],
    }  # fmt: skip


def test_step_one_records_are_read_after_the_first_step() -> None:
    records = step_one_records(arrays())
    assert [(r["episode"], r["fish_idx"]) for r in records] == [(0, 0), (0, 2), (1, 2)]
    assert records[1] == {
        "episode": 0, "fish_idx": 2, "predator_index": 0, "fish_position": [4.0, 5.0],
        "predator_position": [0.1, 0.005], "predator_velocity": [1.0, 0.05], "timestep": 1,
    }  # fmt: skip


def test_a_probe_without_deaths_or_doom_count() -> None:
    record = made(death_steps=np.full((2, 4), -1), doomed=None)
    assert record["step_one_death_count"] == 0 and record["step_one_clusters"] == []
    assert record["doomed_count"] is None and record["saved_share"] is None
    assert outcome_of(record).doomed == 0.0


def test_the_gate_reads_the_record() -> None:
    outcome = outcome_of(made(), tail_type="ne")
    assert (outcome.samples, outcome.step_one_count, outcome.doomed, outcome.tail_type) == (8, 3, 2, "ne")
    assert outcome.early_death_fraction == 0.5
    assert outcome.min_final_survival == 0.25 and outcome.avg_final_survival == 0.5
