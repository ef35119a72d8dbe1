"""From settings to schedules, gate, starts and sea."""

from __future__ import annotations

import pytest

from marlab.fish.training import assemble
from marlab.fish.training.config import FishTrainConfig
from marlab.lab.config import altered
from marlab.lab.errors import UserError
from tests.fish.training.test_config import command


def test_lists_per_phase_follow_the_curriculum() -> None:
    config = command("--curriculum 10:5,20:5").config
    schedules, gate = assemble.schedules(config), assemble.gate(config)
    assert config.iterations == 10 and command("--curriculum 10:5,20:5 --total-iterations 10").config.iterations == 10
    assert schedules.penalty.targets == (0.0, 0.065) and schedules.penalty.ramp_phases == {2}
    assert schedules.boost.schedule.phase_speeds == {2: 0.82} and schedules.boost.schedule.phase_floors == {2: 0.80}
    assert gate is not None and gate.allowance == (2,)


@pytest.mark.parametrize("phases", [1, 2, 3, 5, 9])
def test_any_number_of_phases_needs_one_flag(phases: int) -> None:
    config = FishTrainConfig(curriculum=",".join(["5:2"] * phases))
    schedules, gate = assemble.schedules(config), assemble.gate(config)
    assert [schedules.begin_iteration(i).phase.index for i in (1, 2 * phases)] == [1, phases]
    assert gate is not None and 1 <= gate.allowance[0] <= gate.allowance[-1] <= phases


def test_a_gate_that_is_off_is_not_checked() -> None:
    config = altered(FishTrainConfig(), penalty_gate_required_successes=0, penalty_gate_phase_allowance="99")
    assert assemble.gate(config) is None
    assert assemble.schedules(config).phase_limit is None


def test_one_phase_needs_few_words() -> None:
    config = FishTrainConfig(curriculum="", total_iterations=3)
    assert [assemble.schedules(config).begin_iteration(i).density_penalty for i in (1, 2, 3)] == [0.0, 0.0, 0.0]


def test_the_older_single_file_makes_one_stage() -> None:
    config = command("--tail_seed_replay_path tail_seed_mix_v32_stage1.json --tail_seed_prewarm_iterations 12").config
    queue, _ = assemble.start_queue(config)
    assert queue.capacity == 12 * 128
    with pytest.raises(UserError, match="tail_seed_prewarm_iterations"):
        command("--tail_seed_replay_path a.json")


def test_the_sea_gets_its_settings() -> None:
    values = {"neighbor_radius": 2.5, "predator_pre_roll_steps": 3, "density_target": 0.1}
    config = altered(FishTrainConfig(compat=True), **values)
    sea = assemble.sea_config(config)
    assert (sea.num_fish, sea.neighbor_radius, sea.predator_pre_roll_steps, sea.density_target) == (25, 2.5, 3, 0.1)
    assert (sea.episode_end, sea.vision_reward, sea.heading_wrap) == ("terminated", "cliff", "lost")
    assert assemble.sea_config(config, num_fish=96).num_fish == 96
