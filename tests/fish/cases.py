"""Trainings small enough for tests, and a run of one of them that all tests share."""

from __future__ import annotations

import numpy as np

from marlab.fish.measure.pathfile import FIELD_CELLS, HEADINGS, Paths
from marlab.fish.training.config import FishTrainConfig
from marlab.lab.config import altered

BARE_SETTINGS = {
    "include_neighbor_features": False, "initial_escape_boost": False, "predator_spawn_jitter_radius": 0.0,
    "predator_pre_roll_steps": 0, "predator_heading_bias": "", "predator_pre_roll_speed_bias": "",
}  # fmt: skip
"""The sea without boost, jitter, pre-roll and neighbours: `SeaConfig(**BARE_SETTINGS)`."""

SMALL = altered(
    FishTrainConfig(),
    total_iterations=8,
    num_envs=6,
    curriculum="4:3,6:5",
    n_steps=64,
    batch_size=256,
    n_epochs=2,
    policy_hidden_sizes="16",
    escape_boost_phase_speeds="2:0.78",
    escape_boost_phase_floors="",
    density_penalty_phase_targets="0.0,0.04",
    density_penalty_ramp_phases="2",
    density_penalty_phase_plateaus="",
    density_penalty_lock_until=0,
    penalty_gate_phase_allowance="1,2",
    penalty_gate_success_step_one=-1,
    multi_eval_interval=4,
    multi_eval_probe_episodes=2,
    multi_eval_fixed_episodes=2,
    eval_multi_fish=8,
    eval_multi_episodes=3,
    checkpoint_interval=3,
    tail_seed_stage_spec="2:best_ne.json|type=ne;2:best_sw.json|type=sw",
    tail_force_reset_steps=40,
    tail_replay_count=1,
    video_max_steps=20,
    video_num_fish=5,
    device="cpu",
)


COMPAT = altered(
    SMALL,
    compat=True,
    num_envs=64,
    n_steps=16,
    tail_force_reset_steps=0,
    tail_replay_count=0,
    multi_eval_fixed_episodes=0,
)


def some_paths(arenas: int = 2, steps: int = 30, fish: int = 5) -> Paths:
    """Two policies whose fish swim in circles; fish 1 is eaten at step 7 by the first policy, everybody else lives."""
    rng = np.random.default_rng(1)
    angle = np.linspace(0, 3, steps + 1)[:, None] + np.arange(fish)
    circle = np.stack([np.cos(angle), np.sin(angle)], -1) * 4.0  # [T+1, F, 2]
    position = np.broadcast_to(circle, (2, arenas, *circle.shape)).astype(np.float16)
    predator = rng.uniform(-5, 5, (2, arenas, steps + 1, 1, 2)).astype(np.float16)
    death = np.full((2, arenas, fish), -1, np.int16)
    death[0, :, 1] = 7
    place = np.full((2, arenas, fish, 2), np.nan, np.float16)
    place[0, :, 1] = position[0, :, 7, 1]
    field = np.zeros((len(HEADINGS), FIELD_CELLS, FIELD_CELLS))
    return Paths(
        ["policy", "side<b>step</b>"], list(range(11, 11 + arenas)), position, predator,
        rng.integers(0, 5, (2, arenas, steps, fish)).astype(np.int8), death, place, death, field.astype(np.int8),
        (field + 0.5).astype(np.float16),
    )  # fmt: skip
