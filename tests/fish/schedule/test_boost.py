"""The escape boost: phases, caps and the adaptive controller."""

from __future__ import annotations

from marlab.fish.schedule.boost import AdaptiveBoost, BoostSchedule, EscapeBoost
from marlab.fish.schedule.phases import phase_at
from marlab.fish.training import assemble
from marlab.fish.training.config import FishTrainConfig
from tests.fish.schedule.test_curriculum import PHASES, R2, v32_penalty


def v32_boost() -> EscapeBoost:
    return assemble.schedules(FishTrainConfig(curriculum=R2)).boost


def test_boost_of_the_main_run_sits_on_its_floor() -> None:
    boost, penalty = v32_boost(), v32_penalty(0.05, 24)
    speeds = []
    for i in range(1, 61):
        phase = phase_at(PHASES, i)
        speeds.append(boost.begin_iteration(phase.index, penalty.value(i, phase_limit=4)))
        boost.observe(i, 1.0)  # the recorded signal
    assert speeds == [0.75] * 19 + [0.76] * 9 + [0.78] * 8 + [0.80] * 24


def test_penalty_caps_the_phase_speed() -> None:
    boost = v32_boost()
    assert boost.begin_iteration(5, 0.049) == 0.82
    assert boost.begin_iteration(5, 0.05) == 0.80


def controller(**change: object) -> EscapeBoost:
    settings = AdaptiveBoost(**{"window": 3, "min_iteration": 3, "stage_floor": "1:0.7", **change})  # type: ignore[arg-type]
    boost = EscapeBoost(BoostSchedule(speed=0.9, floor=0.5), settings)
    boost.begin_iteration(1, 0.0)
    return boost


def test_adaptive_boost_moves_between_its_targets() -> None:
    boost = controller()
    assert not boost.observe(1, 1.0)  # too early
    assert not boost.observe(2, 1.0)
    assert boost.observe(3, 1.0)
    assert boost.begin_iteration(1, 0.0) == 0.76
    assert not boost.observe(4, 15.0)  # median 1
    assert boost.begin_iteration(1, 0.0) == 0.76
    assert not boost.observe(5, 15.0)  # median 15: between the limits
    assert not boost.observe(6, 40.0)
    assert boost.observe(7, 40.0)  # median 40
    assert boost.begin_iteration(1, 0.0) == 0.80
    assert boost.begin_iteration(2, 0.0) == 0.9  # a new phase starts from its own base


def test_adaptive_boost_by_mean_and_without_signal() -> None:
    boost = controller(use_median=False)
    assert not boost.observe(3, None)
    assert boost.observe(4, 100.0)
    boost.observe(5, 1.0)
    assert boost.begin_iteration(1, 0.0) == 0.80  # mean 50.5, whose median twin would be the same
    boost.observe(6, 1.0)
    assert boost.begin_iteration(1, 0.0) == 0.80  # mean 34 although two of three are early


def test_gate_stage_raises_the_floor() -> None:
    boost = controller(low_speed=0.55)
    boost.gate_stage = 1
    boost.observe(3, 1.0)
    assert boost.begin_iteration(1, 0.0) == 0.7


def test_disabled_adaptive_boost_never_moves() -> None:
    boost = assemble.schedules(FishTrainConfig(curriculum=R2, disable_adaptive_boost=True)).boost
    boost.begin_iteration(5, 0.0)
    assert not boost.observe(50, 1.0)
    assert boost.begin_iteration(5, 0.0) == 0.82
