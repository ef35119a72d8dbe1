"""The batched training world: resets, masks, statistics, dials, hard starts and bit-equal continuation."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch

from marlab.fish.sea.config import COMPAT_SWITCHES, SeaConfig
from marlab.fish.sea.dynamics import advance
from marlab.fish.sea.perception import neighbours, observe
from marlab.fish.sea.rewards import reward
from marlab.fish.sea.world import FishWorld, Transition
from marlab.lab.errors import UserError


class Slots(NamedTuple):
    active: torch.Tensor
    velocity: torch.Tensor
    position: torch.Tensor
    stage: torch.Tensor


def slots(arenas: int, depth: int, position: float = float("nan"), stage: int = 0) -> Slots:
    """`depth` hard starts per arena, each with a velocity of its own."""
    number = torch.arange(depth * arenas, dtype=torch.float32).reshape(depth, arenas)
    return Slots(
        torch.ones(depth, arenas, dtype=torch.bool),
        torch.stack((0.01 + number, -number), dim=-1) / 100,
        torch.full((depth, arenas, 2), position),
        torch.full((depth, arenas), stage),
    )


def play(world: FishWorld, steps: int, seed: int = 0) -> list[Transition]:
    generator = torch.Generator().manual_seed(seed)
    shape = (world.arenas, world.fish)
    return [world.step(torch.randint(0, 5, shape, generator=generator)) for _ in range(steps)]


def test_step_is_the_pure_functions() -> None:
    cfg = SeaConfig(num_fish=5, density_penalty_coef=0.05)
    world = FishWorld(cfg, 8, seed=1)
    generator = torch.Generator().manual_seed(2)
    for _ in range(50):
        before, acting = world.get_state(), world.acting
        assert torch.equal(acting, before.alive)
        actions = torch.randint(0, 5, (8, 5), generator=generator)
        result = world.step(actions)
        after = advance(before, actions)
        assert all(torch.equal(a, b) for a, b in zip(world.state, after))
        social = neighbours(after, cfg)
        torch.testing.assert_close(world.observe(), observe(after, cfg, social))
        torch.testing.assert_close(result.reward, reward(after, before.alive, cfg, social).total())
        assert torch.equal(result.terminated, before.alive & ~after.alive)
        assert not result.truncated.any()


def test_time_limit_shows_the_final_observation_once_then_begins_anew() -> None:
    world = FishWorld(SeaConfig(num_fish=4), 6, seed=3)
    play(world, 499)
    alive = world.state.alive.clone()
    last = world.step(torch.full((6, 4), 4))
    assert torch.equal(last.truncated, world.state.alive) and last.truncated.any()
    assert torch.equal(last.terminated, alive & ~world.state.alive)
    assert world.waiting.all() and not world.acting.any()
    final = world.observe().clone()
    torch.testing.assert_close(final, observe(world.state, world.cfg))  # the survivors' true last view
    fresh = world.step(torch.full((6, 4), 4))
    assert not fresh.reward.any() and not fresh.terminated.any() and not fresh.truncated.any()
    assert world.acting.all() and not world.state.t.any() and not world.waiting.any()
    assert not torch.equal(world.observe(), final)


def test_time_limit_can_be_a_termination() -> None:
    world = FishWorld(SeaConfig(num_fish=4, **COMPAT_SWITCHES), 6, seed=3)
    play(world, 499)
    last = world.step(torch.full((6, 4), 4))
    assert not last.truncated.any() and torch.equal(last.terminated & world.state.alive, world.state.alive)


def test_forced_resets_truncate_in_both_modes() -> None:
    for switches in ({}, COMPAT_SWITCHES):
        world = FishWorld(SeaConfig(num_fish=4, **switches), 5, seed=3, force_reset_steps=7)
        last = play(world, 7)[-1]
        assert torch.equal(last.truncated, world.state.alive)
        stats = world.pop_stats()
        assert stats["episodes"] == 5 and stats["forced_resets"] == 5 and stats["episode_length"] == 7
        assert stats["survival_at_100"] is None  # nobody got that far: not 100 %, not 0 %


def test_an_arena_ends_when_nobody_lives() -> None:
    world = FishWorld(SeaConfig(num_fish=2), 3, seed=0)
    state = world.get_state()
    state.x[1], state.y[1] = state.predator_x[1], state.predator_y[1]
    world.set_state(state)
    result = world.step(torch.full((3, 2), 4))
    assert result.terminated[1].all() and not result.truncated.any()
    assert world.waiting.tolist() == [False, True, False]
    assert not world.observe()[1].any()
    world.step(torch.full((3, 2), 4))
    assert world.state.t.tolist() == [2, 0, 2] and world.acting[1].all()


def test_every_reset_is_a_new_start() -> None:
    """More resets than the bank holds: it is renewed before it would repeat itself."""
    world = FishWorld(SeaConfig(num_fish=2), 4, seed=0, force_reset_steps=1, bank=4)
    seen = set()
    for _ in range(40):
        seen.update(map(tuple, torch.stack((world.state.x[:, 0], world.state.y[:, 0]), dim=1).tolist()))
        world.step(torch.full((4, 2), 4))
        world.step(torch.full((4, 2), 4))
    assert len(seen) == 4 * 40
    assert world.pop_stats()["starts_reused"] == 0


def test_fish_count_changes_at_the_next_reset_without_rebuilding() -> None:
    world = FishWorld(SeaConfig(num_fish=6), 4, seed=0)
    world.set_fish_count(2)
    assert world.state.exists.sum() == 24
    memory = world.state.x.data_ptr()
    world.reset()
    assert world.state.exists.sum(1).tolist() == [2] * 4 and world.state.x.data_ptr() == memory
    assert not world.observe()[:, 2:].any()
    world.set_fish_count(torch.tensor([1, 2, 3, 6]))
    world.reset()
    assert world.acting.sum(1).tolist() == [1, 2, 3, 6]
    with pytest.raises(UserError):
        world.set_fish_count(7)


def test_slots_without_fish_change_nothing() -> None:
    """Three fish in eight slots meet exactly what three fish in three slots meet."""
    wide, narrow = FishWorld(SeaConfig(num_fish=8), 5, seed=0), FishWorld(SeaConfig(num_fish=3), 5, seed=0)
    wide.set_fish_count(3)
    wide.reset()
    state = wide.get_state()
    narrow.set_state(type(state)(*(t[:, :3] if t.dim() == 2 else t for t in state)))
    for seed in range(30):
        actions = torch.randint(0, 5, (5, 8), generator=torch.Generator().manual_seed(seed))
        a, b = wide.step(actions), narrow.step(actions[:, :3])
        torch.testing.assert_close(a.reward[:, :3], b.reward)
        assert not a.reward[:, 3:].any()
        torch.testing.assert_close(wide.observe()[:, :3], narrow.observe())


def test_density_penalty_can_be_turned_on_later_even_with_11_inputs() -> None:
    cfg = SeaConfig(num_fish=20, include_neighbor_features=False)
    world = FishWorld(cfg, 4, seed=0)
    assert not world.uses_neighbours
    twin = FishWorld(cfg, 4, seed=0)
    twin.set_density_penalty(0.5, target=0.1)
    assert twin.uses_neighbours
    actions = torch.full((4, 20), 4)
    assert float((world.step(actions).reward - twin.step(actions).reward).sum()) > 0
    assert twin.pop_stats()["reward_shares"]["density"] > 0


def test_boost_speed_is_used_by_the_next_resets() -> None:
    world = FishWorld(SeaConfig(num_fish=3), 4, seed=0)
    world.set_escape_boost_speed(0.5)
    world.reset()
    torch.testing.assert_close(torch.hypot(world.state.vx, world.state.vy), torch.full((4, 3), 1.0))
    with pytest.raises(UserError):
        world.set_escape_boost_speed(1.5)


def test_hard_starts_are_met_in_order_one_per_reset() -> None:
    world = FishWorld(SeaConfig(num_fish=2), 3, seed=0)
    world.pop_stats()
    queue = slots(3, 2, position=4.0)
    queue.active[1, 2] = False
    world.feed(queue)
    for k in range(3):
        world.reset()
        for arena in range(3):
            given = k < 2 and bool(queue.active[k, arena])
            met = world.state.predator_velocity[arena].tolist() == pytest.approx(
                queue.velocity[min(k, 1), arena].tolist(), abs=1e-6
            )
            placed = world.state.predator_position[arena].tolist() == pytest.approx([4.0, 4.0])
            assert (met and placed) == given
    assert world.resets_since_feed.tolist() == [3, 3, 3]
    stats = world.pop_stats()
    assert stats["override_hits"] == 5 and stats["override_episodes"] == 9
    world.feed(queue)
    assert world.resets_since_feed.tolist() == [0, 0, 0]


def test_only_the_resetting_arena_takes_from_its_queue() -> None:
    world = FishWorld(SeaConfig(num_fish=1), 3, seed=0)
    world.feed(slots(3, 2, position=4.0))
    world.waiting[1] = True
    world.step(torch.full((3, 1), 4))
    assert world.resets_since_feed.tolist() == [0, 1, 0]
    assert world.state.t.tolist() == [1, 0, 1]


def test_velocity_only_starts_keep_the_place_of_the_pre_roll() -> None:
    plain, hard = FishWorld(SeaConfig(num_fish=1), 4, seed=9), FishWorld(SeaConfig(num_fish=1), 4, seed=9)
    hard.feed(slots(4, 1))
    plain.reset()
    hard.reset()
    assert torch.equal(plain.state.predator_position, hard.state.predator_position)
    torch.testing.assert_close(hard.state.predator_velocity, slots(4, 1).velocity[0])


def test_rerandomised_starts_are_blurred() -> None:
    world = FishWorld(SeaConfig(num_fish=1, **COMPAT_SWITCHES), 50, seed=9)
    queue = slots(50, 1, position=4.0)
    world.feed(queue)
    world.reset()
    assert (world.state.predator_velocity - queue.velocity[0]).abs().amin() > 1e-6
    assert (world.state.predator_position - 4.0).abs().amin() > 1e-6
    assert world.pop_stats()["override_hits"] == 50


def test_wrong_shapes_are_refused() -> None:
    world = FishWorld(SeaConfig(num_fish=1), 3)
    with pytest.raises(UserError):
        world.feed(slots(4, 2))
    with pytest.raises(UserError):
        world.load_state_dict(FishWorld(SeaConfig(num_fish=1), 2).state_dict())
    with pytest.raises(UserError):
        FishWorld(SeaConfig(), 0)


def test_the_same_seed_gives_the_same_world_and_another_does_not() -> None:
    worlds = [FishWorld(SeaConfig(num_fish=3), 4, seed=seed) for seed in (1, 1, 2)]
    assert torch.equal(worlds[0].state.x, worlds[1].state.x)
    assert not torch.equal(worlds[0].state.x, worlds[2].state.x)


def test_continuing_from_a_saved_world_is_bit_equal(tmp_path) -> None:
    """Saved in mid-episode with a half-used queue and penalty on; the file loads without unpickling."""
    cfg = SeaConfig(num_fish=4)

    def fresh(seed: int) -> FishWorld:
        return FishWorld(cfg, 6, seed=seed, force_reset_steps=30)

    world = fresh(1)
    world.feed(slots(6, 3))
    world.set_density_penalty(0.04)
    world.set_fish_count(3)
    play(world, 75)
    torch.save(world.state_dict(), tmp_path / "world.pt")
    twin = fresh(2)
    twin.load_state_dict(torch.load(tmp_path / "world.pt", weights_only=True))
    for a, b in zip(play(world, 100, seed=4), play(twin, 100, seed=4)):
        assert all(torch.equal(x, y) for x, y in zip(a, b))
    assert torch.equal(world.observe(), twin.observe())
    assert world.pop_stats() == twin.pop_stats()


def test_the_step_is_one_graph_and_equals_the_branching_one() -> None:
    """What a GPU runs (no branches, traced whole, here without code generation) against what a CPU runs."""
    options = {"seed": 1, "force_reset_steps": 5, "bank": 40}
    plain, traced = FishWorld(SeaConfig(num_fish=4), 5, **options), FishWorld(SeaConfig(num_fish=4), 5, **options)
    traced._branching, traced._scratch = False, None
    traced._core = torch.compile(traced._step, fullgraph=True, dynamic=False, backend="eager")
    for world in (plain, traced):
        world.feed(slots(5, 1))
    for a, b in zip(play(plain, 20), play(traced, 20)):
        torch.testing.assert_close(a, b)
    torch.testing.assert_close(plain.observe(), traced.observe())
    first, second = plain.pop_stats(), traced.pop_stats()
    assert first.keys() == second.keys() and first["first_death_histogram"] == second["first_death_histogram"]
    assert first["override_hits"] == second["override_hits"] > 0
    assert first["episode_return"] == pytest.approx(second["episode_return"])
