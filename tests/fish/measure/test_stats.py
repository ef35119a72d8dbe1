import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from marlab.fish.measure import stats

# --- survival and death steps -------------------------------------------------------------------------------


def test_survival_summary() -> None:
    made = stats.survival_summary([90, 48, 96], [0.9, 0.4, 1.0], 96)
    assert made == pytest.approx(
        {
            "episodes": 3,
            "avg_final_survival_rate": 234 / 288,
            "min_final_survival_rate": 0.5,
            "avg_min_survival_rate": 2.3 / 3,
            "min_of_min_survival_rate": 0.4,
            "median_min_survival_rate": 0.9,
        }
    )


def test_death_stats_count_survivors_at_the_horizon() -> None:
    deaths = [[1, 99, 100, 149, -1], [150, 500, -1, -1, -1]]
    made = stats.death_stats(deaths)
    assert made["total_fish_samples"] == 10
    assert made["survival_fraction"] == 0.5  # a death at step 500 counts as one, as in the original
    assert made["early_death_fraction_100"] == 0.2
    assert made["early_death_fraction_150"] == 0.4
    assert made["p10"] == made["fish_death_p10"] == pytest.approx(np.percentile([1, 99, 100, 149, 150] + [500] * 5, 10))
    assert made["median_death_step"] == pytest.approx(325.0)


def test_survival_at_horizons_does_not_depend_on_the_episode_length() -> None:
    deaths = [[100, 101, 224, 225, -1]]
    made = stats.survival_at(deaths)
    assert made == pytest.approx({"survival_at_100": 0.8, "survival_at_224": 0.4, "survival_at_500": 0.2})


def test_the_late_signal_from_the_worlds_counts() -> None:
    counts = np.zeros(501, dtype=int)
    counts[[0, 1, 40, 60]] = [2, 30, 1, 7]
    assert stats.late_p10_of_counts(counts) == np.percentile([40] + [60] * 7 + [500] * 2, 10)
    assert counts[1] == 30  # the world's counts are only read
    assert stats.late_p10_of_counts(np.zeros(501)) is None


@given(arrays(np.int64, (4, 6), elements=st.integers(-1, 500).filter(lambda x: x != 0)))
def test_death_stats_are_consistent(deaths: np.ndarray) -> None:
    made = stats.death_stats(deaths)
    assert made["p10"] <= made["p25"] <= made["median_death_step"] <= made["p75"] <= made["p90"] <= 500
    assert 0 <= made["early_death_fraction_100"] <= made["early_death_fraction_150"] <= 1
    assert stats.survival_at(deaths)["survival_at_500"] == (deaths < 0).mean()


def test_saved_share_leaves_the_doomed_out() -> None:
    deaths = np.full((2, 50), -1)
    deaths[0, :3] = 1
    assert stats.saved_share(deaths, doomed=2) == pytest.approx(97 / 98)
    assert stats.saved_share(deaths, doomed=0) == pytest.approx(0.97)


# --- step-one deaths ----------------------------------------------------------------------------------------


def test_metrics_without_deaths_are_unknown_not_zero() -> None:
    made = stats.step_one_metrics(np.zeros((0, 2)), [], 960)
    assert (made["step_one_death_count"], made["step_one_death_ratio"]) == (0, 0.0)
    assert made["step_one_top_share"] is None and made["step_one_ne_high_speed_share"] is None


def test_step_one_deaths_by_type() -> None:
    made = stats.step_one_by_type({"ordinary": 3, "ne": 1}, {"ordinary": 100, "ne": 50, "sw": 0})
    assert made["ordinary"] == {"count": 3, "fish": 100, "ratio": 0.03, "share": 0.75}
    assert made["ne"]["ratio"] == 0.02
    assert made["sw"] == {"count": 0, "fish": 0, "ratio": None, "share": 0.0}


# --- pre-roll -----------------------------------------------------------------------------------------------


def episode(angle: float, override: bool = False) -> dict[str, object]:
    return {
        "spawn_radius": 1.0,
        "spawn_angle_deg": angle,
        "initial_heading_deg": 10.0,
        "initial_speed": 1.5,
        "final_heading_deg": 20.0,
        "final_speed": 2.0,
        "angle_jitter_deg": [1.0, -1.0, 3.0],
        "speed_scale": [0.9, 1.1],
        "heading_bias_angle_deg": None if override else angle,
        "prewarm_velocity_override": override,
    }


def test_pre_roll_summary_pools_and_counts() -> None:
    made = stats.pre_roll_stats_summary([episode(-170.0), episode(170.0), episode(15.0, override=True)])
    assert made["angle_jitter_deg"]["count"] == 9
    assert made["angle_jitter_deg"]["mean"] == pytest.approx(1.0)
    assert made["heading_bias_angle_deg"]["count"] == 2
    assert (made["prewarm_override_count"], made["prewarm_override_ratio"]) == (1, pytest.approx(1 / 3))
    hist = [0] * 12
    hist[6], hist[5], hist[0] = 1, 1, 1  # -170 counts as 190 degrees and is not lost
    assert made["spawn_angle_hist"] == hist
    assert sum(made["initial_speed_hist"]["counts"]) == 3 and len(made["initial_speed_hist"]["edges"]) == 11
    assert set(made["final_speed"]) == {"count", "mean", "std", "p10", "p50", "p90", "min", "max"}


def test_pre_roll_summary_of_nothing() -> None:
    made = stats.pre_roll_stats_summary([])
    assert made["spawn_radius"]["count"] == 0 and made["spawn_radius"]["mean"] is None
    assert made["prewarm_override_ratio"] is None


# --- choosing -----------------------------------------------------------------------------------------------


def record(iteration: int, count: int, early: float, survival: float) -> dict[str, object]:
    return {
        "iteration": iteration,
        "step_one_death_count": count,
        "death_stats": {"early_death_fraction_100": early},
        "summary": {"avg_final_survival_rate": survival},
    }


def test_best_probe_within_the_limits() -> None:
    records = [
        record(16, 9, 0.05, 0.99),
        record(32, 7, 0.09, 0.90),
        record(48, 7, 0.08, 0.85),
        record(60, 8, 0.2, 0.95),
    ]
    best = stats.best_probe(records, 8, 0.1)
    assert best is not None and best["iteration"] == 48
    best = stats.best_probe(records, 8, 0.1, rule="survival")
    assert best is not None and best["iteration"] == 32
    best = stats.best_probe(records, 0, 0.0, rule="survival")  # limits off
    assert best is not None and best["iteration"] == 16
    assert stats.best_probe(records, 3, 0.1) is None
    assert stats.passes_best_limits(records[0], 0, 0.1)
    assert not stats.passes_best_limits(records[3], 0, 0.1)


def test_speeds_that_differ_in_the_last_bits_only_can_be_binned() -> None:
    speeds = [1.5, float(np.nextafter(1.5, 2.0))]
    summary = stats.pre_roll_stats_summary([{"initial_speed": v, "spawn_angle_deg": 0.0} for v in speeds])
    assert sum(summary["initial_speed_hist"]["counts"]) == 2
