"""The world that PPO sees: resets one step late, seats, statistics, and continuing bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from marlab.hunt.game.config import game_config
from marlab.hunt.game.rules import STAY
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import parse_roles
from marlab.hunt.ppo.learners import SeedWorld
from marlab.hunt.ppo.world import HuntWorld
from marlab.lab.errors import UserError
from marlab.lab.ppo.config import PPOConfig
from marlab.lab.ppo.nets import ActorCritic
from marlab.lab.ppo.ppo import PPO
from marlab.lab.runs.checkpoint import load_checkpoint, save_checkpoint
from marlab.lab.runs.testing import assert_same
from tests.hunt.helpers import seeded, small_game

FOUR = game_config("msh_4x4")


def random_actions(world: HuntWorld, generator: torch.Generator) -> torch.Tensor:
    return torch.randint(0, 7, world.acting.shape, generator=generator)


def test_an_episode_shows_its_end_and_starts_anew_one_step_later() -> None:
    game, generator = small_game(FOUR), seeded(0)
    world = HuntWorld(game, 64, generator)
    finished = 0
    for _ in range(120):
        before, waiting = world.state, world.over
        acting = world.acting
        assert_same(acting, before.alive & ~waiting.unsqueeze(1))
        step = world.step(random_actions(world, generator))
        assert not step.truncated.any()
        assert not step.terminated[~acting].any() and (step.reward[~acting] == 0).all()
        assert (world.state.t[waiting] == 0).all() and world.state.alive[waiting].all()
        assert (world.state.t[~waiting] == before.t[~waiting] + 1).all()
        assert_same(world.over, game.over(world.state) & ~waiting)
        gone = acting & ~world.acting
        assert_same(step.terminated, gone)  # whoever stops acting was told so, and nobody else
        finished += int(world.over.sum())
    assert finished > 100


def test_learning_seats_and_the_others_meet_in_their_places() -> None:
    game, generator = small_game(FOUR), seeded(2)
    world = HuntWorld(game, 8, generator, seats=(2,), others=RulePlayers(game, parse_roles("RAND,RAND,RAND,RAND")))
    rows, expected = torch.arange(8), torch.full((8,), 2)
    for _ in range(80):
        seen, view = world.observe(), world.view
        assert seen.mask is not None
        assert_same(seen.mask[:, 0], view.mask[rows, expected])
        assert_same(seen.obs[:, 0, world.fields.grid], view.grid[rows, expected].flatten(1).float())
        assert_same(world.acting[:, 0], world.state.alive[rows, expected] & ~world.over)
        waiting, alive = world.over, world.state.alive[rows, expected]
        world.step(torch.full((8, 1), STAY))
        stayed = world.state.last_action[rows, expected] == STAY
        assert (stayed | waiting | ~alive).all()


@pytest.mark.parametrize("name", ["msh_4x4", "msh_8x8_b5"])
def test_a_saved_world_continues_bit_for_bit(name: str, tmp_path: Path) -> None:
    def make() -> HuntWorld:
        game = small_game(game_config(name), seed=7)
        return HuntWorld(
            game, 32, seeded(8), seats=(0, 1), others=RulePlayers(game, parse_roles("NS,NS,MIX(0.5),WAIT(2)"))
        )

    def run(world: HuntWorld, steps: int, seed: int) -> list:
        generator = seeded(seed)
        return [(tuple(world.step(random_actions(world, generator))), tuple(world.observe()[:2])) for _ in range(steps)]

    first = make()
    run(first, 50, 1)
    save_checkpoint(tmp_path / "w.pt", "test", 1, first.state_dict())
    second = make()
    second.load_state_dict(load_checkpoint(tmp_path / "w.pt", "test").state)
    assert_same(run(first, 60, 2), run(second, 60, 2))
    assert_same(first.state_dict(), second.state_dict())
    other = HuntWorld(small_game(game_config(name)), 16, seeded(0))
    with pytest.raises(UserError, match="does not continue in this one"):
        other.load_state_dict(first.state_dict())


def test_fixed_shapes_give_the_same_world_rules_as_restarting_some() -> None:
    """The accelerator's path (restart by selection) obeys the same contract on the CPU."""
    game, generator = small_game(game_config("msh_8x8_b5")), seeded(4)
    world = HuntWorld(game, 128, generator)
    world.fixed_shapes = True
    restarted = 0
    for _ in range(80):
        before, waiting = world.state, world.over
        world.step(random_actions(world, generator))
        assert (world.state.t[waiting] == 0).all()
        restarted += int(waiting.sum())
        assert_same(world.state.prey_cell[~waiting], before.prey_cell[~waiting])
    assert restarted >= 128


def test_ppo_learns_in_it() -> None:
    """Two players, one hare each at most two steps away: PPO must soon take hares."""
    game, generator = small_game(game_config("msh_tiny")), seeded(0)
    world = SeedWorld(HuntWorld(game, 128, generator), 1, 1.0)
    net = ActorCritic(world.world.fields.size, (7,), (64,), generator=seeded(1))
    learner = PPO(net, PPOConfig(n_steps=16, batch_size=1024, learning_rate=3e-3, entropy_coef=0.01), seeded(2))
    learner.update(learner.collect(world), 3e-3, 0.01)
    before = world.pop_stats()[0]["reward"]
    for _ in range(25):
        stats = learner.update(learner.collect(world), 3e-3, 0.01)
    assert stats["ppo/samples"] > 0
    world.pop_stats()
    learner.collect(world)
    assert world.pop_stats()[0]["reward"] > before + 0.1


def test_wrong_seats_are_refused() -> None:
    game = small_game(FOUR)
    with pytest.raises(UserError, match="expected different ones"):
        HuntWorld(game, 4, seeded(0), seats=(0, 0))
    with pytest.raises(UserError, match="say who plays the other 3"):
        HuntWorld(game, 4, seeded(0), seats=(0,))
