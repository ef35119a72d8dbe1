from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marlab.fish.schedule.curriculum import (
    PenaltyConfig,
    PenaltySchedule,
    entropy_coef,
    lr_elapsed,
    parse_entropy_windows,
)
from marlab.fish.schedule.phases import parse_curriculum
from marlab.fish.training import assemble
from marlab.fish.training.config import FishTrainConfig
from marlab.lab.config import altered
from marlab.lab.errors import UserError
from marlab.lab.ppo.config import lr_scale

R2 = "15:9,20:10,25:9,25:8,25:8,25:8,25:8"
PHASES = parse_curriculum(R2, 60, 25)


def v32_penalty(lock_value: float = 0.04, lock_until: int = 28) -> PenaltySchedule:
    targets = (0.0, 0.02, 0.04, 0.05, 0.055, 0.06, 0.065)
    return PenaltySchedule(PHASES, 0.0, targets, frozenset({6, 7}), (0, 0, 6, 6, 4, 0, 0), lock_value, lock_until)


def test_penalty_without_gate() -> None:
    schedule = v32_penalty()
    first_five = [schedule.value(p.first) for p in PHASES[:5]]
    assert first_five == [0.0, 0.02, 0.04, 0.05, 0.055]
    assert [schedule.value(i) for i in (45, 52, 60)] == pytest.approx([0.055, 0.06, 0.065])
    assert schedule.value(46) == pytest.approx(0.055 + 0.005 / 7)


def test_penalty_of_the_main_run_with_the_gate_at_stage_zero() -> None:
    schedule = v32_penalty(lock_value=0.05, lock_until=24)
    trace = [schedule.value(i, phase_limit=4) for i in range(1, 61)]
    assert trace == [0.0] * 9 + [0.02] * 10 + [0.04] * 9 + [0.05] * 32


def test_lock_caps_the_value_until_its_iteration() -> None:
    schedule = v32_penalty(lock_value=0.01, lock_until=12)
    assert [schedule.value(i) for i in (12, 13)] == [0.01, 0.02]


def test_plateau_holds_the_ramp_and_a_limit_freezes_it_at_its_end() -> None:
    phases = parse_curriculum("10:2,10:6,10:4", 12, 10)
    schedule = PenaltySchedule(phases, 0.1, (0.2, 0.8, 1.0), frozenset({1, 2}), (0, 2, 0), 1.0, 0)
    assert [schedule.value(i) for i in range(1, 9)] == pytest.approx([0.1, 0.2, 0.2, 0.2, 0.2, 0.4, 0.6, 0.8])
    assert [schedule.value(i, phase_limit=2) for i in (9, 12)] == pytest.approx([0.8, 0.8])


# --- density penalty ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"density_penalty_phase_targets": "0,0.1"}, "phase_targets"),
        ({"density_penalty_phase_plateaus": "0,0"}, "phase_plateaus"),
        ({"density_penalty_ramp_phases": "8"}, "phase 8"),
        ({"density_penalty_phase_plateaus": "0,0,6,6,4,0,4"}, "never reaches"),
        ({"density_penalty_phase_targets": "0,0,0,0,0,0,-1"}, "negative"),
        ({"escape_boost_phase_speeds": "9:0.8"}, "phase 9"),
        ({"escape_boost_phase_floors": "1:1.8"}, "fraction"),
        ({"entropy_coef_schedule": "16-24"}, "entropy_coef_schedule"),
        ({"entropy_coef_schedule": "24-16:0.1"}, "end not before"),
    ],
)
def test_impossible_schedules_are_refused(change: dict[str, str], word: str) -> None:
    with pytest.raises(UserError, match=word):
        altered(FishTrainConfig(), **change)


def test_v32s_lists_are_stretched_over_the_phases() -> None:
    schedule = PenaltyConfig().schedule(PHASES, 0.0)
    assert schedule == v32_penalty()
    short = PenaltyConfig().schedule(parse_curriculum("15:3,25:3,25:3,25:3,25:3,25:3,25:3", 21, 25), 0.0)
    assert short.plateaus == (0, 0, 2, 2, 2, 0, 0)  # a ramp keeps one iteration for its target
    bare = PenaltyConfig(phase_targets="", ramp_phases="", phase_plateaus="").schedule(PHASES, 0.3)
    assert (bare.targets, bare.ramp_phases, bare.plateaus) == ((0.3,) * 7, frozenset(), (0,) * 7)


def test_a_phase_at_the_limit_acts_and_its_ramp_begins_at_the_phase_before() -> None:
    phases = parse_curriculum("10:2,10:3,10:4", 9, 10)
    schedule = PenaltySchedule(phases, 0.5, (1.0, 2.0, 5.0), frozenset({2, 3}), (0, 0, 1), 9.0, 0)
    whole = [1.0, 1.0, 1.0, 1.5, 2.0, 2.0, 2.0, 3.5, 5.0]
    assert [schedule.value(i) for i in range(1, 10)] == pytest.approx(whole)
    assert [schedule.value(i, phase_limit=3) for i in range(1, 10)] == pytest.approx(whole)
    assert [schedule.value(i, phase_limit=2) for i in range(1, 10)] == pytest.approx([*whole[:5], 2, 2, 2, 2])
    assert [schedule.value(i, phase_limit=1) for i in range(1, 10)] == pytest.approx([1.0] * 9)


def test_a_ramp_of_one_iteration_reaches_its_target_at_once() -> None:
    phases = parse_curriculum("10:3,10:1", 4, 10)
    schedule = PenaltySchedule(phases, 0.5, (1.0, 2.0), frozenset({1, 2}), (2, 0), 9.0, 0)
    assert [schedule.value(i) for i in range(1, 5)] == [0.5, 0.5, 1.0, 2.0]
    for change in ({"plateaus": (3, 0)}, {"plateaus": (-1, 0)}, {"base": -0.1}, {"ramp_phases": frozenset({0})}):
        with pytest.raises(UserError):
            replace(schedule, **change)
    assert replace(schedule, ramp_phases=frozenset(), plateaus=(3, 9)).value(1) == 1.0  # only ramps wait


def test_windows_may_begin_at_one_last_one_iteration_and_be_worth_nothing() -> None:
    windows = parse_entropy_windows("1-1:0,2:0.5")
    assert [entropy_coef(i, 0.9, windows) for i in (1, 2, 3)] == [0.0, 0.5, 0.9]
    assert entropy_coef(5, 0.9, parse_entropy_windows("3-9:0.1,3+:0.2")) == 0.2  # the later of two equal starts
    assert entropy_coef(5, 0.9, parse_entropy_windows("4+:0.2,3-9:0.1")) == 0.2
    for text in ("0-3:0.1", "3:-0.1", "4-3:1"):
        with pytest.raises(UserError, match="expected a start from 1"):
            parse_entropy_windows(text)


def test_elapsed_time_of_the_rate() -> None:
    assert [lr_elapsed(i, PHASES, "run") for i in (1, 31, 60)] == [0.0, 0.5, 59 / 60]
    assert [lr_elapsed(i, PHASES, "phase") for i in (1, 9, 10, 60)] == [1 / 9, 1.0, 10 / 19, 1.0]


# --- entropy and learning rate ------------------------------------------------------------------------------


def test_entropy_windows() -> None:
    windows = parse_entropy_windows("16-24:0.03,25-32:0.02,30+:0.01,40:0.5")
    expected = {1: 0.9, 15: 0.9, 16: 0.03, 24: 0.03, 25: 0.02, 29: 0.02, 30: 0.01, 39: 0.01, 40: 0.5, 41: 0.01}
    assert {i: entropy_coef(i, 0.9, windows) for i in expected} == expected


def test_warm_cosine_values() -> None:
    values = [lr_scale("warm_cosine", x) for x in (0, 0.1, 0.2, 0.5, 0.8, 1)]
    assert values == pytest.approx([1, 0.75, 0.5, 0.3457, 0.0732, 0], abs=5e-5)


def test_other_lr_schedules() -> None:
    assert [lr_scale("constant", x) for x in (0.0, 1.0)] == [1.0, 1.0]
    assert [lr_scale("cosine", x) for x in (0.0, 0.5, 1.0)] == pytest.approx([1.0, 0.5, 0.0])


@given(st.lists(st.integers(1, 20), min_size=1, max_size=8), st.sampled_from(["cosine", "warm_cosine"]))
def test_the_rate_over_the_whole_run_is_monotone_and_never_zero(lengths: list[int], schedule: str) -> None:
    phases = parse_curriculum(",".join(f"5:{n}" for n in lengths), sum(lengths), 5)
    rates = [lr_scale(schedule, lr_elapsed(i, phases, "run")) for i in range(1, sum(lengths) + 1)]  # type: ignore[arg-type]
    assert rates[0] == 1.0
    assert all(a > b for a, b in itertools.pairwise(rates))
    assert rates[-1] > 0


def test_the_rate_per_phase_is_the_recorded_saw_tooth() -> None:
    recorded = {8: 6e-6, 10: 8.0e-5, 18: 1.3e-6, 20: 3.5e-5, 27: 6e-7, 53: 6.4e-6, 59: 1e-7}
    for iteration, rate in recorded.items():
        ours = 2.5e-4 * lr_scale("warm_cosine", lr_elapsed(iteration, PHASES, "phase"))
        digits = 2 if rate in (8.0e-5, 1.3e-6, 3.5e-5, 6.4e-6) else 1
        assert float(f"{ours:.{digits - 1}e}") == pytest.approx(rate)
    assert lr_scale("warm_cosine", lr_elapsed(9, PHASES, "phase")) == pytest.approx(0.0, abs=1e-12)


# --- all of it ----------------------------------------------------------------------------------------------


def test_schedules_follow_the_gate_and_continue_after_a_save() -> None:
    config = FishTrainConfig(curriculum=R2)
    ours, theirs = assemble.schedules(config), assemble.schedules(config)
    for i in range(1, 41):
        ours.begin_iteration(i)
        ours.boost.observe(i, 30.0)
        if i == 33:
            ours.follow_gate(stage=1, phase_limit=5)
    theirs.load_state_dict(ours.state_dict())
    for i in range(41, 61):
        assert ours.begin_iteration(i) == theirs.begin_iteration(i)
        assert ours.boost.observe(i, 1.0) == theirs.boost.observe(i, 1.0)
    assert ours.begin_iteration(60).density_penalty == pytest.approx(0.055)  # phase 5's target is the limit


def test_iteration_settings_carry_everything() -> None:
    made = assemble.schedules(altered(FishTrainConfig(), curriculum=R2, learning_rate=1e-3)).begin_iteration(20)
    assert (made.phase.num_fish, made.new_phase, made.entropy_coef) == (25, True, 0.03)
    assert made.learning_rate == pytest.approx(1e-3 * 0.25 * (1 + math.cos(math.pi * (19 / 60 - 0.2) / 0.8)))
