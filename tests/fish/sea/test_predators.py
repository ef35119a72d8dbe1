"""Predators that hunt: steps by hand, a plain loop beside the batched rules, and the limits of speed and turn."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.dynamics import SeaState, advance, ballistic
from marlab.fish.sea.perception import observe, sight
from marlab.fish.sea.predators import predator_step
from marlab.fish.sea.reset import begin, sample_starts, seeded_reset
from marlab.fish.sea.seas import SEAS
from marlab.fish.sea.world import FishWorld
from marlab.lab.errors import UserError
from tests.fish.build import sea_of

HUNTERS = [name for name, cfg in SEAS.items() if cfg.hunted]
F64 = torch.float64


def sea_config(mode: str = "pursuit", **settings: Any) -> SeaConfig:
    return SeaConfig(**{"predator_mode": mode, "predator_speed": 2.0, "predator_turn_rate": 1.0, **settings})


def moved(state: SeaState, cfg: SeaConfig) -> list[float]:
    return [round(float(value[0]), 6) for value in predator_step(cfg)(state).predator]


def test_pursuit_turns_by_its_limit_towards_the_nearest_fish() -> None:
    state = sea_of([(0.0, 5.0), (0.0, 4.0), (0.0, -5.9)], predator=(0.0, 0.0), predator_velocity=(2.0, 0.0), dtype=F64)
    angle = 0.1  # 1 rad/s for a tenth of a second; the fish is at 90 degrees
    vx, vy = 2 * math.cos(angle), 2 * math.sin(angle)
    assert moved(state, sea_config()) == pytest.approx([0.1 * vx, 0.1 * vy, vx, vy], abs=1e-6)


def test_pursuit_aims_exactly_where_the_limit_allows_it_and_changes_speed_slowly() -> None:
    state = sea_of([(5.0, 0.25)], predator=(0.0, 0.0), predator_velocity=(1.0, 0.0), dtype=F64)
    angle, speed = math.atan2(0.25, 5.0), 1.0 + 4.0 * 0.1
    vx, vy = speed * math.cos(angle), speed * math.sin(angle)
    assert moved(state, sea_config()) == pytest.approx([0.1 * vx, 0.1 * vy, vx, vy], abs=1e-6)


def test_a_hunter_goes_straight_on_when_nobody_is_in_sight_and_bounces_off_the_wall() -> None:
    state = sea_of([(0.0, 6.5)], predator=(0.0, 0.0), predator_velocity=(2.0, 0.0), dtype=F64)
    assert moved(state, sea_config(predator_vision=6.0)) == [0.2, 0.0, 2.0, 0.0]
    dead = state._replace(alive=torch.zeros_like(state.alive))
    assert moved(dead, sea_config(predator_vision=9.0)) == [0.2, 0.0, 2.0, 0.0]
    at_wall = sea_of([(0.0, 0.0)], predator=(9.9, 0.0), predator_velocity=(2.0, 0.0), dtype=F64)
    assert moved(at_wall, sea_config(predator_vision=6.0)) == pytest.approx([10.0, 0.0, -1.7, 0.0], abs=1e-6)


def test_a_hunter_at_rest_takes_the_heading_it_wants() -> None:
    state = sea_of([(0.0, -3.0)], predator=(0.0, 0.0), dtype=F64)
    assert moved(state, sea_config()) == pytest.approx([0.0, -0.04, 0.0, -0.4], abs=1e-6)


def test_intercept_aims_at_where_the_fish_will_be() -> None:
    state = sea_of([(2.0, 0.0)], [(0.0, 1.0)], predator=(0.0, 0.0), predator_velocity=(2.0, 0.0), dtype=F64)
    first = 2.0 / 2.0  # s to where it is, then to where it will be by then
    second = math.hypot(2.0, first) / 2.0
    angle = math.atan2(second * 1.0, 2.0)
    vx, vy = 2 * math.cos(angle), 2 * math.sin(angle)
    got = moved(state, sea_config("intercept", predator_turn_rate=9.0))
    assert got == pytest.approx([0.1 * vx, 0.1 * vy, vx, vy], abs=1e-6)
    limited = moved(state, sea_config("intercept"))
    assert math.atan2(limited[3], limited[2]) == pytest.approx(0.1, abs=1e-6)


def test_burst_spends_its_breath_rests_and_recovers() -> None:
    cfg = sea_config("burst", predator_vision=30.0)
    state = sea_of([(2.0, 0.0)], predator=(0.0, 0.0), predator_velocity=(2.0, 0.0), dtype=F64)
    state = state._replace(memory=torch.tensor([[sea.BREATH, 0.0]], dtype=F64))
    hunt, speeds, resting = predator_step(cfg), [], []
    for _ in range(60):  # the prey is always 2 m ahead, so the predator always strikes
        state = hunt(state)
        state = state._replace(predator_x=torch.zeros_like(state.predator_x))
        speeds.append(round(float(state.predator_vx), 3))
        resting.append(bool(state.memory[0, 1]))
    burst_steps, rest_steps = round(sea.BREATH / 0.1), round(sea.RECOVERY / 0.1)
    assert speeds[:4] == [2.4, 2.8, 3.2, 3.2] and max(speeds) == 2.0 * sea.BURST_FACTOR
    assert resting[: burst_steps - 1] == [False] * (burst_steps - 1)
    assert resting[burst_steps - 1 : burst_steps + rest_steps - 1] == [True] * rest_steps
    assert not resting[burst_steps + rest_steps - 1]
    assert min(speeds) == pytest.approx(2.0 * sea.TIRED_FACTOR)


def test_a_pack_shares_the_fish_out() -> None:
    cfg = sea_config("pack", predator_count=2, predator_turn_rate=99.0)
    # Both fish are nearest to the second predator at (4, 0); the first one hunts the fish that is its own.
    state = sea_of([(3.0, 0.0), (4.0, 1.0), (-3.0, 0.0)], predator=(0.0, 0.0), predator_velocity=(2.0, 0.0), dtype=F64)
    state = state._replace(pack=torch.tensor([[4.0, 0.0, 0.0, 2.0]], dtype=F64))
    after = predator_step(cfg)(state)
    assert after.predators.vx[0].tolist() == pytest.approx([-2.0, -2.0], abs=1e-6)  # to (-3, 0), and to (3, 0)
    # With nobody of its own in sight it hunts what the other one hunts.
    lonely = state._replace(alive=torch.tensor([[True, True, False]]))
    assert predator_step(cfg)(lonely).predators.vx[0].tolist() == pytest.approx([2.0, -2.0], abs=1e-6)


def test_all_of_a_pack_kill_and_the_nearest_is_seen() -> None:
    state = sea_of([(4.1, 0.0), (0.0, 0.5), (0.0, 5.0)], predator=(0.0, 0.0))
    state = state._replace(pack=torch.tensor([[4.0, 0.0, 0.7, 0.3]]))
    after = advance(state, torch.full((1, 3), sea.HOLD), lambda state: state)
    assert after.alive[0].tolist() == [False, False, True]
    seen = sight(state)
    assert seen.dx[0].tolist() == pytest.approx([-0.1, 0.0, 0.0], abs=1e-6)
    assert seen.vx.expand(1, 3)[0].tolist() == pytest.approx([0.7, 0.0, 0.0])
    assert observe(state, SeaConfig(predator_mode="pack", predator_count=2))[0, 0, 8] == pytest.approx(0.35)


def test_a_crowd_confuses_the_hunter() -> None:
    prey = [(0.0, 4.0), (0.5, 4.0), (-0.5, 4.5), (0.0, 5.1)]  # two of the others are within 1 m of the nearest
    state = sea_of(prey, predator=(0.0, 0.0), predator_velocity=(2.0, 0.0), dtype=F64)
    turned = moved(state, sea_config(predator_confusion=0.5))
    assert math.atan2(turned[3], turned[2]) == pytest.approx(0.1 / (1 + 0.5 * 2), abs=1e-6)


def test_a_turned_pull_is_the_standard_sea_turned() -> None:
    cfg = SeaConfig(num_fish=1, predator_pull="random")
    state, _ = seeded_reset([3, 4], cfg, dtype=F64)
    plain, _ = seeded_reset([3, 4], SeaConfig(num_fish=1), dtype=F64)
    side_x, side_y = state.memory.unbind(1)  # where it is pulled; north is (0, 1)
    for _ in range(80):
        state, plain = predator_step(cfg)(state), ballistic(plain)
    torch.testing.assert_close(state.predator_x, side_y * plain.predator_x + side_x * plain.predator_y)
    torch.testing.assert_close(state.predator_y, -side_x * plain.predator_x + side_y * plain.predator_y)
    assert not torch.allclose(side_x, torch.zeros_like(side_x))


def test_a_faster_ballistic_predator_takes_the_same_path() -> None:
    start = sea_of([(0.0, 0.0)], predator=(0.0, 0.0), predator_velocity=(1.0, 0.5), dtype=F64)
    quick = start._replace(predator_vx=2 * start.predator_vx, predator_vy=2 * start.predator_vy)
    slow_step, quick_step = (predator_step(SeaConfig(predator_speed_factor=f)) for f in (1.0, 2.0))
    for _ in range(10):
        start, quick = slow_step(slow_step(start)), quick_step(quick)
    assert float(quick.predator_x) == pytest.approx(float(start.predator_x))
    assert float(quick.predator_y) == pytest.approx(float(start.predator_y), abs=0.06)  # one step instead of two
    twice, once = (seeded_reset([5], SeaConfig(predator_speed_factor=f))[0] for f in (2.0, 1.0))
    torch.testing.assert_close(twice.predator_velocity, 2 * once.predator_velocity)


# ---------------------------------------------------------------- a plain loop beside the batched rules


def loop_step(state: SeaState, arena: int, cfg: SeaConfig) -> list[tuple[float, float, float, float]]:
    """The predators of one arena after their step, in Python floats and without shared code (not for burst)."""
    alive = state.alive[arena].tolist()
    fish = [f for f, living in zip(zip(*(p[arena].tolist() for p in state[:4])), alive) if living]
    hunters = list(zip(*(p[arena].tolist() for p in state.predators)))
    after = []
    for x, y, vx, vy in hunters:
        own = [f for f in fish if all(math.dist(f[:2], (x, y)) <= math.dist(f[:2], h[:2]) for h in hunters)]
        visible = [f for f in own if math.dist(f[:2], (x, y)) < cfg.predator_vision]
        visible = visible or [f for f in fish if math.dist(f[:2], (x, y)) < cfg.predator_vision]
        speed, heading, turn = math.hypot(vx, vy), math.atan2(vy, vx), 0.0
        if visible:
            prey = min(visible, key=lambda f: math.dist(f[:2], (x, y)))
            time = 0.0
            for _ in range(0 if cfg.predator_mode == "pursuit" else 2):
                way = math.dist((prey[0] + time * prey[2], prey[1] + time * prey[3]), (x, y))
                time = min(way / cfg.predator_speed, sea.INTERCEPT_HORIZON)
            wanted = math.atan2(prey[1] + time * prey[3] - y, prey[0] + time * prey[2] - x)
            crowd = sum(math.dist(f[:2], prey[:2]) <= 1.0 for f in fish) - 1
            limit = cfg.predator_turn_rate * 0.1 / (1 + cfg.predator_confusion * crowd)
            turn = max(-limit, min(limit, math.remainder(wanted - heading, 2 * math.pi)))
        speed += max(-0.4, min(0.4, cfg.predator_speed - speed))
        vx, vy = speed * math.cos(heading + turn), speed * math.sin(heading + turn)
        x, y = x + 0.1 * vx, y + 0.1 * vy
        if (radius := math.hypot(x, y)) > 10.0:
            nx, ny = x / radius, y / radius
            out = 1.85 * (vx * nx + vy * ny)
            x, y, vx, vy = 10.0 * nx, 10.0 * ny, vx - out * nx, vy - out * ny
        after.append((x, y, vx, vy))
    return after


@pytest.mark.parametrize("name", ["pursuit", "intercept", "pack", "shoal"])
def test_batched_hunters_equal_a_plain_loop(name: str) -> None:
    cfg = replace(SEAS[name], num_fish=6, predator_speed=4.0)
    state, _ = seeded_reset(range(4), cfg, dtype=F64)
    hunt, generator = predator_step(cfg), torch.Generator().manual_seed(0)
    for _ in range(60):
        actions = torch.randint(0, 5, state.x.shape, generator=generator)
        before = advance(state, actions, lambda state: state)  # the fish have moved, the predators have not
        expected = [loop_step(before, arena, cfg) for arena in range(4)]
        got = torch.stack(hunt(before).predators, -1)
        torch.testing.assert_close(got, torch.tensor(expected, dtype=F64), atol=1e-9, rtol=0)
        state = advance(state, actions, hunt)


@pytest.mark.parametrize("name", HUNTERS)
def test_no_hunter_breaks_its_limits(name: str) -> None:
    cfg = replace(SEAS[name], num_fish=8)
    starts = sample_starts(16, 8, cfg, torch.Generator().manual_seed(1))
    state, hunt = begin(starts, torch.ones_like(starts.x, dtype=torch.bool)), predator_step(cfg)
    top = cfg.predator_speed * (sea.BURST_FACTOR if name == "burst" else 1.0)
    for step in range(120):
        before, state = state.predators, advance(state, torch.zeros_like(state.x, dtype=torch.int64), hunt)
        now = state.predators
        inside = torch.hypot(now.x, now.y) < 9.99
        turn = torch.atan2(before.vx * now.vy - before.vy * now.vx, before.vx * now.vx + before.vy * now.vy).abs()
        moving = torch.hypot(before.vx, before.vy) > 0.02
        assert bool((turn <= cfg.predator_turn_rate * 0.1 + 1e-4)[inside & moving].all())
        assert step < 10 or float(torch.hypot(now.vx, now.vy).max()) <= top + 1e-5
        assert float(torch.hypot(now.x, now.y).max()) <= 10.0 + 1e-4


def test_a_world_resets_the_whole_predator() -> None:
    cfg = replace(SEAS["burst"], num_fish=2)
    world = FishWorld(cfg, 4, force_reset_steps=30)
    memory = [world.state.memory.clone()]
    for _ in range(32):
        world.step(torch.full((4, 2), sea.BRAKE))
        memory.append(world.state.memory.clone())
    assert torch.equal(memory[0], torch.tensor([[sea.BREATH, 0.0]]).expand(4, 2))
    assert any(bool((m != memory[0]).any()) for m in memory)
    assert torch.equal(memory[31], memory[0])  # step 31 is the late reset
    pack = FishWorld(replace(SEAS["pack"], num_fish=2), 3)
    first, second = (torch.stack(pack.state.predators, -1)[:, i] for i in (0, 1))
    torch.testing.assert_close(first, -second)  # of two, the second starts on the other side


def test_impossible_predators_are_refused() -> None:
    for settings in (
        {"predator_mode": "pack"}, {"predator_count": 2}, {"predator_mode": "teleport"}, {"predator_pull": "west"},
        {"predator_mode": "pursuit", "predator_pull": "random"}, {"predator_speed": 0.0},
    ):  # fmt: skip
        with pytest.raises(UserError):
            SeaConfig(**settings)  # type: ignore[arg-type]
