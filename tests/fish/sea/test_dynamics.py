"""Motion, walls and kills against the golden values and the plain loop."""

from __future__ import annotations

import torch

from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.dynamics import Predator, advance, ballistic_step, collide, fish_step, plane
from marlab.fish.sea.perception import neighbours, observe
from marlab.fish.sea.reset import seeded_reset
from marlab.fish.sea.rewards import reward
from tests.fish.build import reference_of, sea_of


def predator_after(steps: int) -> list[float]:
    predator = Predator(*(torch.tensor([value]) for value in (0.0, 0.0, 1.5, 0.0)))
    for _ in range(steps):
        predator = ballistic_step(predator)
    return [float(value) for value in predator]


def close(values: list[float], expected: list[float], tolerance: float) -> None:
    torch.testing.assert_close(torch.tensor(values), torch.tensor(expected), atol=tolerance, rtol=0)


def test_predator_golden_path() -> None:
    close(predator_after(1), [0.15, 0.005, 1.5, 0.05], 1e-5)
    close(predator_after(10), [1.5, 0.275, 1.5, 0.5], 1e-5)
    close(predator_after(50), [7.5, 6.375, 1.5, 2.5], 1e-4)
    close(predator_after(51), [7.55689, 6.54930, -2.41951, -0.84691], 1e-4)
    for steps, place in ((100, [-4.29871, 8.52445]), (200, [-5.65716, 7.49912]), (500, [-3.23185, 9.40661])):
        close(predator_after(steps)[:2], place, 1e-3)


def test_each_action_on_a_swimming_fish() -> None:
    state = sea_of([(1.0, 2.0)] * 5, [(0.6, 0.8)] * 5)
    after = fish_step(state, torch.arange(5)[None])
    expected = [(0.66, 0.88), (0.11962, 0.99282), (0.91962, 0.39282), (0.54, 0.72), (0.6, 0.8)]
    torch.testing.assert_close(after.velocities[0], torch.tensor(expected), atol=1e-5, rtol=0)
    torch.testing.assert_close(after.positions, state.positions + 0.1 * after.velocities)


def test_a_fish_at_rest_accelerates_along_x_and_cannot_turn() -> None:
    after = fish_step(sea_of([(0.0, 0.0)] * 5), torch.arange(5)[None])
    expected = [(0.1, 0.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)]
    torch.testing.assert_close(after.velocities[0], torch.tensor(expected))


def test_top_speed_and_wall() -> None:
    fast = fish_step(sea_of([(0.0, 0.0)], [(1.96, 0.0)]), torch.zeros(1, 1, dtype=torch.int64))
    torch.testing.assert_close(fast.velocities[0, 0], torch.tensor([2.0, 0.0]))
    hit = fish_step(sea_of([(9.95, 0.0)], [(1.6, 1.2)]), torch.full((1, 1), 4))
    close(hit.positions[0, 0].tolist() + hit.velocities[0, 0].tolist(), [9.99930, 0.11869, -0.82102, 1.17126], 1e-4)


def test_kill_distance_is_strict_and_the_step_counts_from_one() -> None:
    state = sea_of([(0.7, 0.0), (0.6999, 0.0), (0.0, 0.7)], predator=(0.0, 0.0))
    after = collide(state._replace(t=state.t + 1))
    assert after.alive.tolist() == [[True, False, True]]
    assert after.death_step.tolist() == [[-1, 1, -1]]


def test_the_dead_do_not_move_and_die_once() -> None:
    state = sea_of([(0.1, 0.0), (5.0, 0.0)], [(1.0, 0.0), (1.0, 0.0)], predator=(0.0, 0.0))
    state = advance(state, torch.full((1, 2), 4))
    frozen = state.positions[0, 0].clone()
    for _ in range(5):
        state = advance(state, torch.zeros(1, 2, dtype=torch.int64))
    assert state.death_step.tolist() == [[1, -1]]
    assert torch.equal(state.positions[0, 0], frozen)
    assert float(state.x[0, 1]) > 5.3


def test_batched_core_equals_the_plain_loop_for_full_episodes() -> None:
    """20 seeds, 500 random steps: same death steps, positions within a millimetre, rewards and inputs equal."""
    cfg = SeaConfig(density_penalty_coef=0.05, divergence_reward_coef=0.3)
    seeds, fish = range(20), 12
    state, _ = seeded_reset(list(seeds), cfg, fish)
    loops = [reference_of(state, b, density_coef=0.05, divergence_coef=0.3) for b in seeds]
    generator = torch.Generator().manual_seed(5)
    for _ in range(500):
        actions = torch.randint(0, 5, (len(seeds), fish), generator=generator)
        before = state.alive
        state = advance(state, actions)
        social = neighbours(state, cfg)
        gains = reward(state, before, cfg, social).total()
        seen = observe(state, cfg, social)
        for b, loop in enumerate(loops):
            rewards, rows = loop.step(actions[b].tolist())
            assert [one.alive for one in loop.fish] == state.alive[b].tolist()
            torch.testing.assert_close(gains[b], torch.tensor(rewards), atol=2e-3, rtol=0)
            living = [row for row in rows if row is not None]
            if living:
                torch.testing.assert_close(seen[b][state.alive[b]], torch.tensor(living), atol=2e-3, rtol=0)
    for b, loop in enumerate(loops):
        assert [one.death_step for one in loop.fish] == state.death_step[b].tolist()
        places = torch.tensor([(one.x, one.y) for one in loop.fish])
        torch.testing.assert_close(state.positions[b], places, atol=1e-3, rtol=0)


def test_same_start_and_actions_give_the_same_bits_in_every_layout() -> None:
    cfg = SeaConfig(num_fish=6)
    state, _ = seeded_reset([3, 4, 5, 6, 7, 8, 9], cfg)
    assert state.x.stride() == (1, 7)  # many arenas: arena index innermost
    rows = type(state)(*(tensor.contiguous() for tensor in state))
    generator = torch.Generator().manual_seed(1)
    for _ in range(60):
        actions = torch.randint(0, 5, (7, 6), generator=generator)
        state, rows = advance(state, actions), advance(rows, actions)
    assert all(torch.equal(a, b) for a, b in zip(state, rows))


def test_plane_is_zero_and_has_the_asked_shape() -> None:
    for arenas, fish in ((2, 5), (5, 2)):
        values = plane(arenas, fish, torch.float32, "cpu")
        assert values.shape == (arenas, fish) and not values.any()


def test_a_state_shows_its_predators_by_arena() -> None:
    """Two arenas: rows are arenas, the first predator stands before its pack, and writing back changes nothing."""
    fish = [(1.0, 2.0), (3.0, 4.0)]
    state = seeded_reset([5, 6], SeaConfig(num_fish=2))[0]._replace(
        predator_x=torch.tensor([1.0, 2.0]), predator_y=torch.tensor([3.0, 4.0]),
        predator_vx=torch.tensor([5.0, 6.0]), predator_vy=torch.tensor([7.0, 8.0]),
        x=torch.tensor([[a[0] for a in fish]] * 2), y=torch.tensor([[a[1] for a in fish]] * 2),
    )  # fmt: skip
    assert state.predator_position.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert state.predator_velocity.tolist() == [[5.0, 7.0], [6.0, 8.0]]
    assert state.positions.tolist() == [[[1.0, 2.0], [3.0, 4.0]]] * 2
    alone = state._replace(pack=torch.zeros(2, 0))
    assert [plane.tolist() for plane in alone.predators] == [
        [[1.0], [2.0]], [[3.0], [4.0]], [[5.0], [6.0]], [[7.0], [8.0]],
    ]  # fmt: skip
    pack = torch.arange(10.0, 26.0).reshape(2, 8)  # two more in each arena: all x, all y, all vx, all vy
    hunted = state._replace(pack=pack)
    assert hunted.predators.x.tolist() == [[1.0, 10.0, 11.0], [2.0, 18.0, 19.0]]
    assert hunted.predators.vy.tolist() == [[7.0, 16.0, 17.0], [8.0, 24.0, 25.0]]
    for each in (alone, hunted):
        assert all(torch.equal(a, b) for a, b in zip(each.with_predators(each.predators), each))
