"""The density penalty over the phases."""

from __future__ import annotations

import pytest

from marlab.fish.schedule.penalty import PenaltySchedule
from marlab.fish.schedule.phases import parse_curriculum
from tests.fish.schedule.test_curriculum import PHASES


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
