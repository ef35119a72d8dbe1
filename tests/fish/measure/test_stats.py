import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from marlab.fish.measure import stats


def polar(heading_deg: float, speed: float) -> list[float]:
    return [speed * np.cos(np.radians(heading_deg)), speed * np.sin(np.radians(heading_deg))]


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


def test_first_deaths_per_episode() -> None:
    deaths = np.array([[5, 1, -1], [-1, -1, -1], [30, 40, -1]])
    assert stats.first_deaths(deaths).tolist() == [1, -1, 30]
    assert stats.first_deaths(deaths, after=1).tolist() == [5, -1, 30]
    made = stats.first_death_stats(stats.first_deaths(deaths))
    assert made["first_death_sample_size"] == 2
    assert made["first_death_step"] == 15.5
    assert made["first_death_p10"] == made["episode_first_death_p10"] == pytest.approx(3.9)
    assert stats.first_death_stats([-1, -1])["first_death_p10"] is None


def test_the_late_signal_moves_where_the_old_one_is_stuck() -> None:
    early = np.full((20, 25), -1)
    early[:3, 0] = 1  # three of twenty episodes lose a fish at step one
    early[:, 1] = 40
    late = early.copy()
    late[:, 1] = 300
    assert all(stats.first_death_stats(stats.first_deaths(d))["first_death_p10"] == 1 for d in (early, late))
    assert stats.late_first_death_p10(early) == 40
    assert stats.late_first_death_p10(late) == 300
    assert stats.late_first_death_p10(np.full((3, 4), -1)) == 500


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


def test_ratio_is_over_all_fish_of_all_episodes() -> None:
    assert stats.step_one_ratio(13, 10, 96) == pytest.approx(0.0135417, abs=1e-7)


def test_a_known_velocity_falls_into_its_bin() -> None:
    (cluster,) = stats.step_one_clusters([[-0.78, 1.74]])
    assert (cluster["angle_deg_start"], cluster["angle_deg_end"]) == (90, 120)
    assert (cluster["speed_bin_start"], cluster["speed_bin_end"]) == (1.6, 2.0)


def test_bin_edges_belong_to_the_upper_bin() -> None:
    velocities = [polar(0, 1.2), polar(30, 0.8), polar(359.999, 0.1), [0.0, 0.0]]
    assert stats.cluster_bins(velocities) == [(0, 3), (1, 2), (11, 0), (0, 0)]


def test_clusters_are_sorted_and_shares_add_up() -> None:
    clusters = stats.step_one_clusters([polar(100, 1.7)] * 5 + [polar(70, 2.1)] * 3 + [polar(130, 1.3)] * 2)
    assert [c["count"] for c in clusters] == [5, 3, 2]
    assert sum(c["share"] for c in clusters) == pytest.approx(1.0)
    assert stats.ne_high_speed_share(clusters) == pytest.approx(0.5)


def test_clusters_from_the_worlds_counts_are_the_same() -> None:
    records = [polar(100, 1.7)] * 5 + [polar(70, 2.1)] * 3 + [polar(350, 0.1)] * 3
    table = np.zeros((12, 16), dtype=int)
    for a, s in stats.cluster_bins(records):
        table[a, s] += 1
    assert stats.clusters_of_counts(table) == stats.step_one_clusters(records)
    assert stats.clusters_of_counts(np.zeros((12, 16))) == []


def test_ne_share_of_the_acceptance_example() -> None:
    bins = [(90, 1.6, 0.5), (60, 2.0, 0.3), (120, 1.2, 0.2)]
    clusters = [
        {"angle_deg_start": a, "angle_deg_end": a + 30, "speed_bin_start": s, "speed_bin_end": s + 0.4, "share": share}
        for a, s, share in bins
    ]
    assert stats.ne_high_speed_share(clusters) == pytest.approx(0.5)


def test_the_exact_share_uses_its_own_threshold() -> None:
    records = [polar(100, 1.7), polar(100, 1.81), polar(149, 2.5), polar(150.1, 2.5)]
    assert stats.ne_high_speed_share(stats.step_one_clusters(records)) == pytest.approx(0.75)
    assert stats.ne_high_speed_exact(records) == pytest.approx(0.5)
    assert stats.ne_high_speed_exact(np.zeros((0, 2))) is None


def test_interval_knows_that_an_episode_has_one_predator() -> None:
    ne, other = polar(100, 2.0), polar(300, 2.0)
    apart = stats.ne_high_speed_interval([ne, other] * 10, range(20))
    together = stats.ne_high_speed_interval([ne] * 10 + [other] * 10, [0] * 10 + [1] * 10)
    assert apart is not None and together is not None
    assert apart[0] > together[0] and apart[1] < together[1]
    none = stats.ne_high_speed_interval([other] * 13, range(13))
    assert none is not None and none[0] == 0.0 and 0.15 < none[1] < 0.3  # 0 of 13 is far from proof
    assert stats.ne_high_speed_interval(np.zeros((0, 2)), []) is None


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


def test_worst_episodes_by_survivors_then_lowest_then_number() -> None:
    assert stats.worst_episodes([5, 3, 3, 9, 3], [0.5, 0.2, 0.1, 0.9, 0.1], 4) == [2, 4, 1, 0]


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
