"""Where episodes begin: golden draws, equal distributions of both sources, and what an override means."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import COMPAT_SWITCHES, SeaConfig
from marlab.fish.sea.dynamics import SeaState, advance
from marlab.fish.sea.perception import neighbours
from marlab.fish.sea.reset import Override, begin, sample_predators, sample_starts, seeded_reset
from marlab.fish.sea.rewards import reward
from tests.fish.cases import BARE_SETTINGS

COMPAT = SeaConfig(**COMPAT_SWITCHES)


def test_golden_reset_and_first_step() -> None:
    cfg = SeaConfig(num_fish=3, density_penalty_coef=0.04, **COMPAT_SWITCHES)
    state, [record] = seeded_reset([7], cfg)
    places = [(-5.07236, -5.07845), (-2.16649, 6.64413), (1.09105, -3.58096)]
    speeds = [(-1.02015, -1.09967), (0.01569, 1.49992), (0.42247, -1.43928)]
    torch.testing.assert_close(state.positions[0], torch.tensor(places), atol=1e-5, rtol=0)
    torch.testing.assert_close(state.velocities[0], torch.tensor(speeds), atol=1e-5, rtol=0)
    predator = torch.cat((state.predator_position, state.predator_velocity), dim=1)[0]
    torch.testing.assert_close(predator, torch.tensor([2.29302, -1.44819, 1.05864, -1.90239]), atol=1e-5, rtol=0)
    assert record["heading_bias_angle_deg"] == pytest.approx(307.33075, abs=1e-5)
    assert record["final_velocity"] == pytest.approx([1.05864, -1.90239], abs=1e-5)
    after = advance(state, torch.tensor([[0, 1, 3]]))
    gains = reward(after, state.alive, cfg, neighbours(after, cfg)).total()
    torch.testing.assert_close(gains[0], torch.tensor([0.7, 0.7, 0.93034]), atol=1e-5, rtol=0)


def test_a_batch_of_seeds_is_each_seed_alone() -> None:
    together, _ = seeded_reset([7, 8, 9], SeaConfig(num_fish=4))
    for arena, seed in enumerate((7, 8, 9)):
        alone, _ = seeded_reset([seed], SeaConfig(num_fish=4))
        assert all(torch.equal(a[arena], b[0]) for a, b in zip(together, alone))


def test_draw_order_equals_scalar_draws() -> None:
    """The vectorised draw consumes the generator exactly as one uniform() after another."""
    cfg = SeaConfig(**BARE_SETTINGS)
    state, _ = seeded_reset([11], cfg, fish=5)
    rng = np.random.default_rng(11)
    for i in range(5):
        angle, radius = rng.uniform(0, 2 * math.pi), rng.uniform(0, 8)
        heading, speed = rng.uniform(0, 2 * math.pi), rng.uniform(0, 1)
        assert float(state.x[0, i]) == pytest.approx(radius * math.cos(angle), abs=1e-5)
        assert float(state.vy[0, i]) == pytest.approx(speed * math.sin(heading), abs=1e-6)


def test_record_holds_every_draw() -> None:
    _, [record] = seeded_reset([1], SeaConfig())
    for name in ("angle_jitter_deg", "speed_scale", "speed_bias_target"):
        assert len(record[name]) == record["pre_roll_steps"] == 16
    assert record["prewarm_velocity_override"] is False
    _, [bare] = seeded_reset([1], SeaConfig(**BARE_SETTINGS))
    assert bare["heading_bias_angle_deg"] is None and bare["final_velocity"] == [1.5, 0.0]


def largest_gap(a: torch.Tensor, b: torch.Tensor) -> float:
    """Two-sample Kolmogorov-Smirnov statistic."""
    a, b = a.flatten().sort().values, b.flatten().sort().values
    points = torch.cat((a, b))
    share = [torch.searchsorted(values, points, right=True) / len(values) for values in (a, b)]
    return float((share[0] - share[1]).abs().max())


@pytest.mark.parametrize("cfg", [SeaConfig(), COMPAT, SeaConfig(**BARE_SETTINGS)], ids=["fixed", "compat", "bare"])
def test_both_sources_have_one_distribution(cfg: SeaConfig) -> None:
    """KS at the 0.1 % level on positions, speeds, headings and the predator, 1,500 arenas from each source."""
    arenas, fish = 1500, 3
    seeded, _ = seeded_reset(list(range(arenas)), cfg, fish)
    starts = sample_starts(arenas, fish, cfg, torch.Generator().manual_seed(12))
    volume = begin(starts, torch.ones(arenas, fish, dtype=torch.bool))
    for name, value in features(seeded).items():
        other = features(volume)[name]
        limit = 1.95 * math.sqrt(2 / value.numel())
        assert largest_gap(value, other) < limit, name


def features(state: SeaState) -> dict[str, torch.Tensor]:
    outward = torch.atan2(state.y, state.x)
    turn = torch.remainder(torch.atan2(state.vy, state.vx) - outward + math.pi, 2 * math.pi)
    return {
        "radius": torch.hypot(state.x, state.y),
        "angle": outward,
        "speed": torch.hypot(state.vx, state.vy).round(decimals=5),
        "heading from outward": turn,
        "predator x": state.predator_x,
        "predator y": state.predator_y,
        "predator speed": torch.hypot(state.predator_vx, state.predator_vy),
        "predator heading": torch.atan2(state.predator_vy, state.predator_vx),
    }


def test_a_wrong_distribution_is_noticed() -> None:
    """The test above has teeth: a wider first heading fails it."""
    seeded, _ = seeded_reset(list(range(1500)), SeaConfig(), 3)
    starts = sample_starts(1500, 3, SeaConfig(escape_jitter_std=0.5), torch.Generator().manual_seed(12))
    other = begin(starts, torch.ones(1500, 3, dtype=torch.bool))
    name = "heading from outward"
    assert largest_gap(features(seeded)[name], features(other)[name]) > 1.95 * math.sqrt(2 / 4500)


def test_preserved_override_is_met_exactly() -> None:
    cfg = SeaConfig()
    full = Override((0.68, 1.62), position=(2.0, -3.0))
    bare = Override((-0.05, 0.18))
    state, records = seeded_reset([5, 5, 5], cfg, overrides=[full, bare, None])
    assert state.predator_position[0].tolist() == pytest.approx([2.0, -3.0])
    assert state.predator_velocity[0].tolist() == pytest.approx([0.68, 1.62], abs=1e-6)
    assert records[0]["pre_roll_steps"] == 0
    assert state.predator_velocity[1].tolist() == pytest.approx([-0.05, 0.18], abs=1e-6)
    assert torch.equal(state.predator_position[1], state.predator_position[2])  # the ordinary pre-roll's place
    assert torch.equal(state.positions[0], state.positions[2])  # the shoal does not notice
    assert records[1]["prewarm_velocity"] == [-0.05, 0.18] and records[1]["prewarm_velocity_override"]


def test_rerandomised_override_only_begins_the_pre_roll() -> None:
    state, [record] = seeded_reset([5], COMPAT, overrides=[Override((0.68, 1.62))])
    assert record["initial_velocity"] == [0.68, 1.62] and record["heading_bias_angle_deg"] is None
    assert len(record["speed_scale"]) == 16
    assert state.predator_velocity[0].tolist() != pytest.approx([0.68, 1.62], abs=1e-2)


def test_rerandomised_speed_is_forgotten() -> None:
    """The original's flaw, kept for comparison: over 20,000 resets the seed's speed leaves no trace."""
    generator = torch.Generator().manual_seed(3)
    speed = torch.rand(20000, generator=generator) * 2 + 0.1
    predator = sample_predators(20000, COMPAT, generator, velocity=(speed, torch.zeros_like(speed)))
    final = torch.hypot(predator.vx, predator.vy)
    assert abs(float(torch.corrcoef(torch.stack((speed, final)))[0, 1])) < 0.03


def test_predators_stay_in_the_arena_and_slots_outside_exist_are_empty() -> None:
    starts = sample_starts(500, 4, SeaConfig(), torch.Generator().manual_seed(1))
    assert float(torch.hypot(starts.predator_x, starts.predator_y).max()) <= sea.ARENA_RADIUS + 1e-4
    exists = torch.arange(4) < torch.tensor([2])
    state = begin(starts, exists.expand(500, 4))
    assert not state.alive[:, 2:].any() and not state.x[:, 2:].any()
