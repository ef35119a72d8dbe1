"""Step-one deaths by the predator's velocity: bins, shares and their intervals."""

import numpy as np
import pytest

from marlab.fish.starts import clusters as made


def polar(heading_deg: float, speed: float) -> list[float]:
    return [speed * np.cos(np.radians(heading_deg)), speed * np.sin(np.radians(heading_deg))]


def test_a_known_velocity_falls_into_its_bin() -> None:
    (cluster,) = made.step_one_clusters([[-0.78, 1.74]])
    assert (cluster["angle_deg_start"], cluster["angle_deg_end"]) == (90, 120)
    assert (cluster["speed_bin_start"], cluster["speed_bin_end"]) == (1.6, 2.0)


def test_bin_edges_belong_to_the_upper_bin() -> None:
    velocities = [polar(0, 1.2), polar(30, 0.8), polar(359.999, 0.1), [0.0, 0.0]]
    assert made.cluster_bins(velocities) == [(0, 3), (1, 2), (11, 0), (0, 0)]


def test_clusters_are_sorted_and_shares_add_up() -> None:
    clusters = made.step_one_clusters([polar(100, 1.7)] * 5 + [polar(70, 2.1)] * 3 + [polar(130, 1.3)] * 2)
    assert [c["count"] for c in clusters] == [5, 3, 2]
    assert sum(c["share"] for c in clusters) == pytest.approx(1.0)
    assert made.north_west_share(clusters) == pytest.approx(0.5)


def test_clusters_from_the_worlds_counts_are_the_same() -> None:
    records = [polar(100, 1.7)] * 5 + [polar(70, 2.1)] * 3 + [polar(350, 0.1)] * 3
    table = np.zeros((12, 16), dtype=int)
    for a, s in made.cluster_bins(records):
        table[a, s] += 1
    assert made.clusters_of_counts(table) == made.step_one_clusters(records)
    assert made.clusters_of_counts(np.zeros((12, 16))) == []


def test_ne_share_of_the_acceptance_example() -> None:
    bins = [(90, 1.6, 0.5), (60, 2.0, 0.3), (120, 1.2, 0.2)]
    clusters = [
        {"angle_deg_start": a, "angle_deg_end": a + 30, "speed_bin_start": s, "speed_bin_end": s + 0.4, "share": share}
        for a, s, share in bins
    ]
    assert made.north_west_share(clusters) == pytest.approx(0.5)


def test_the_exact_share_uses_its_own_threshold() -> None:
    records = [polar(100, 1.7), polar(100, 1.81), polar(149, 2.5), polar(150.1, 2.5)]
    assert made.north_west_share(made.step_one_clusters(records)) == pytest.approx(0.75)
    assert made.north_west_share_exact(records) == pytest.approx(0.5)
    assert made.north_west_share_exact(np.zeros((0, 2))) is None


def test_interval_knows_that_an_episode_has_one_predator() -> None:
    ne, other = polar(100, 2.0), polar(300, 2.0)
    apart = made.north_west_interval([ne, other] * 10, range(20))
    together = made.north_west_interval([ne] * 10 + [other] * 10, [0] * 10 + [1] * 10)
    assert apart is not None and together is not None
    assert apart[0] > together[0] and apart[1] < together[1]
    none = made.north_west_interval([other] * 13, range(13))
    assert none is not None and none[0] == 0.0 and 0.15 < none[1] < 0.3  # 0 of 13 is far from proof
    assert made.north_west_interval(np.zeros((0, 2)), []) is None
