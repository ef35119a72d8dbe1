"""The batched view of one fish per arena equals the original's wrapper."""

from __future__ import annotations

import numpy as np
import torch

from marlab.fish.envs.arena import Arena
from marlab.fish.envs.gym import FishEscapeSingleEnv
from marlab.fish.sea.config import COMPAT_SWITCHES, SeaConfig
from marlab.fish.sea.reset import seeded_reset
from marlab.fish.sea.single import SingleFishView
from marlab.fish.sea.world import FishWorld


def test_single_view_of_the_batched_world_equals_the_wrapper() -> None:
    """Three arenas of the batched view against three single environments, through deaths."""
    cfg = SeaConfig(num_fish=4, **COMPAT_SWITCHES)
    seeds = [2, 5, 9]
    world = FishWorld(cfg, 3)
    world.set_state(seeded_reset(seeds, cfg)[0])
    view = SingleFishView(world)
    envs = [FishEscapeSingleEnv(num_fish=4) for _ in seeds]
    for env in envs:  # tensors too: what C rounds otherwise adds up over an episode
        env.arena = Arena(env.arena.cfg, native=False)
    rows = np.stack([env.reset(seed=seed)[0] for env, seed in zip(envs, seeds)])
    rng = np.random.default_rng(0)
    for _ in range(500):
        np.testing.assert_allclose(view.observe()[:, 0].numpy(), rows, atol=1e-6)
        actions = rng.integers(0, 5, size=3)
        result = view.step(torch.from_numpy(actions)[:, None])
        steps = [env.step(action) for env, action in zip(envs, actions)]
        rows = np.stack([step[0] for step in steps])
        np.testing.assert_allclose(result.reward[:, 0].numpy(), [step[1] for step in steps], atol=1e-5)
        assert result.terminated[:, 0].tolist() == [step[2] for step in steps]
        assert not result.truncated.any()
    assert world.waiting.all() and not view.acting.any()
    view.step(torch.zeros(3, 1, dtype=torch.int64))
    assert view.watched.tolist() == [0, 0, 0] and view.acting.all()


def test_single_view_continues_bit_equal() -> None:
    def fresh(seed: int) -> SingleFishView:
        return SingleFishView(FishWorld(SeaConfig(num_fish=4), 5, seed=seed), "random", seed=seed)

    view, twin = fresh(1), fresh(2)
    actions = torch.randint(0, 5, (40, 5, 1), generator=torch.Generator().manual_seed(0))
    for action in actions[:20]:
        view.step(action)
    twin.load_state_dict(view.state_dict())
    for action in actions[20:]:
        view.step(action)
        twin.step(action)
        assert torch.equal(view.observe(), twin.observe())
