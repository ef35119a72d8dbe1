"""Differences by hand: paired over seeds, over cases, or not at all, and what is called noise."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from marlab.lab.compare.compare import Difference, compare_groups, difference
from marlab.lab.compare.groups import open_groups
from marlab.lab.compare.measure import Member
from marlab.lab.errors import UserError
from tests.lab.compare.cases import make_training, two_groups


def training(value: float, seed: str = "0", **cases: float) -> Member:
    return Member(f"r{seed}", seed, value, cases)


def test_shared_seeds_are_paired() -> None:
    """Seeds differ by 10 from each other and groups by about 1: only pairs can see it."""
    a = [training(v, str(i)) for i, v in enumerate([11.0, 21.2, 30.9, 41.1])]
    b = [training(v, str(i)) for i, v in enumerate([10.0, 20.0, 30.0, 40.0])]
    found = difference(a, list(reversed(b)))
    gaps = np.array([1.0, 1.2, 0.9, 1.1])
    half = stats.t.ppf(0.975, 3) * gaps.std(ddof=1) / 2
    assert (found.how, found.pairs) == ("seeds", 4)
    assert (found.value, found.low, found.high) == pytest.approx((1.05, 1.05 - half, 1.05 + half))
    assert found.outcome("higher") == "better" and found.outcome("lower") == "worse" and found.outcome(None) == "higher"
    apart = difference(a, [training(m.value, f"9{m.seed}") for m in b])
    assert apart.how == "apart" and apart.outcome("higher") == "within noise"
    wanted = stats.ttest_ind([m.value for m in a], [m.value for m in b], equal_var=False).confidence_interval(0.95)
    assert (apart.low, apart.high) == pytest.approx((wanted.low, wanted.high))


def test_one_training_each_is_compared_case_by_case() -> None:
    a = [training(2.0, "0", x=1.0, y=2.0, z=3.0)]
    found = difference(a, [training(5.0, "0", x=0.5, y=1.4, w=13.0)])
    assert (found.how, found.pairs, found.value) == ("cases", 2, pytest.approx(0.55))
    assert difference(a, [training(5.0, "7", x=0.5, y=1.4, w=13.0)]).how == "single"  # or is it the seed?
    alone = difference([training(2.0)], [training(1.0)])
    assert (alone.how, alone.value, alone.low) == ("single", 1.0, None) and alone.outcome("higher") == "unknown"


def test_seeds_are_paired_over_the_cases_that_both_met() -> None:
    a = [training(9.0, s, x=1.0, y=17.0) for s in "01"]
    b = [training(0.5, s, x=0.5) for s in "01"]
    found = difference(a, b)
    assert (found.how, found.value, found.low, found.high) == ("seeds", 0.5, 0.5, 0.5)


def test_nothing_at_all_differs() -> None:
    same = [training(1.0, s) for s in "01"]
    assert difference(same, same).outcome("higher") == "equal"


def test_how_many_seeds_would_be_needed() -> None:
    assert Difference(1.0, -1.0, 3.0, "seeds", 4).needed() == 16  # half as wide needs four times as many
    assert Difference(1.0, 0.5, 1.5, "seeds", 4).needed() == 4
    assert Difference(0.0, -1.0, 1.0, "seeds", 4).needed() is None


def test_a_comparison_of_three_groups(tmp_path: Path) -> None:
    runs = two_groups(tmp_path, [1.0, 2.0, 3.0, 4.0], [1.5, 2.4, 3.6, 4.5])
    runs += [make_training(tmp_path, f"c{i}", 1.01 + i, i, rate=0.7) for i in range(4)]
    found = compare_groups(open_groups(runs, tmp_path))
    assert [(row.name, len(row.members), row.outcome) for row in found.rows] == [
        ("rate=0.1", 4, None), ("rate=0.3", 4, "better"), ("rate=0.7", 4, "better"),
    ]  # fmt: skip
    assert (found.against, found.best, found.runner_up) == ("rate=0.1", "rate=0.3", "rate=0.7")
    gaps = np.array([0.5, 0.4, 0.6, 0.5])
    half = stats.t.ppf(1 - 0.05 / 4, 3) * gaps.std(ddof=1) / 2  # two differences share the 5 %
    gap = found.rows[1].difference
    assert gap is not None and (gap.low, gap.high) == pytest.approx((0.5 - half, 0.5 + half))
    assert found.rows[0].iqm is not None and found.rows[0].iqm.value == 2.5
    assert found.settings == {"rate": ["0.1", "0.3", "0.7"]}
    assert [value.value for value in found.others["speed"]] == [5.0, 6.0, pytest.approx(5.02)]
    stored = json.loads(json.dumps(found.as_json(), allow_nan=False))
    assert stored["rows"][1]["by_training"][0] == {"run": "toy/b0", "seed": "0", "value": 1.5}


def test_the_reference_can_be_chosen_and_lower_can_be_better(tmp_path: Path) -> None:
    groups = open_groups(two_groups(tmp_path, [1.0, 2.0], [3.0, 4.0], first_seed_of_b=5), tmp_path)
    found = compare_groups(groups, "speed", "lower", against="rate=0.3")
    assert (found.best, found.rows[1].outcome) == ("rate=0.1", None)
    assert found.rows[0].difference is not None and found.rows[0].difference.value == -4.0
    with pytest.raises(UserError, match="There is no group 'x'"):
        compare_groups(groups, against="x")


def test_noise_is_rarely_called_better(tmp_path: Path) -> None:
    """600 pairs of groups without a difference: the 95 % intervals leave out zero in about 5 %."""
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(600):
        a, b = ([training(float(v), str(i)) for i, v in enumerate(rng.normal(size=5))] for _ in "ab")
        wrong += difference(a, b).outcome("higher") in ("better", "worse")
    assert 0.02 < wrong / 600 < 0.09 and math.isfinite(wrong)
