"""The richer views of neighbours, by hand."""

from __future__ import annotations

import math

import pytest
import torch

from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.perception import observe
from marlab.fish.sea.world import FishWorld
from marlab.lab.errors import UserError
from tests.fish.build import sea_of


def test_the_nearest_come_first_and_the_far_not_at_all() -> None:
    state = sea_of([(0.0, 0.0), (1.0, 0.0), (0.0, -0.6), (3.5, 0.0)], [(0.0, 1.0), (0.0, 2.0), (1.0, 0.0), (0.0, 0.0)])
    cfg = SeaConfig(neighbor_view="nearest", neighbor_radius=2.0, neighbor_average_count=3)
    seen = observe(state, cfg)[0, 0]
    assert seen.shape == (cfg.observation_size,) == (26,)
    assert seen[11:].tolist() == pytest.approx([0, -0.3, 0.5, 0, 1, 0.5, 0, 0, 1, 1, 0, 0, 0, 0, 0])
    plain = observe(state, SeaConfig(include_neighbor_features=False))
    assert torch.equal(seen[:11], plain[0, 0])
    dead = state._replace(alive=torch.tensor([[True, True, False, True]]))
    assert observe(dead, cfg)[0, 0, 11:16].tolist() == pytest.approx([0.5, 0, 0, 1, 1])
    assert not observe(dead, cfg)[0, 2].any()


def test_fewer_fish_than_places_leave_zeros() -> None:
    cfg = SeaConfig(neighbor_view="nearest", neighbor_average_count=6)
    assert observe(sea_of([(0.0, 0.0), (1.0, 0.0)]), cfg).shape == (1, 2, 41)


def test_rays_begin_ahead_and_go_round_to_the_left() -> None:
    # The fish swims north: ahead is north, a quarter turn to the left is west.
    state = sea_of([(0.0, 0.0), (0.0, 1.5), (-1.0, 0.0)], [(0.0, 1.0), (0.0, 0.0), (0.0, 0.0)], predator=(1.0, 0.0))
    cfg = SeaConfig(neighbor_view="rays", neighbor_radius=3.0)
    fish, predator, wall = observe(state, cfg)[0, 0, 11:].split(16)
    assert {i: round(float(v), 4) for i, v in enumerate(fish) if v > 0} == {0: 0.5, 4: round(2 / 3, 4)}
    assert {i: round(float(v), 4) for i, v in enumerate(predator) if v > 0} == {12: 0.7}
    assert not wall.any()
    near = sea_of([(0.0, 9.0)], [(0.0, 1.0)])
    wall = observe(near, cfg)[0, 0, 11 + 32 :]
    assert float(wall[0]) == pytest.approx(1 - 1 / cfg.vision_radius, abs=1e-5)
    slant = math.sqrt(81 * 0.5 + 19) - 9 * math.sqrt(0.5)
    assert wall[[2, 14]].tolist() == pytest.approx([1 - slant / cfg.vision_radius] * 2, abs=1e-5)
    assert float(wall[8]) == 0


@pytest.mark.parametrize("view", ["nearest", "rays"])
def test_a_world_shows_the_view(view: str) -> None:
    cfg = SeaConfig(num_fish=4, neighbor_view=view)  # type: ignore[arg-type]
    world = FishWorld(cfg, 3)
    world.step(torch.zeros(3, 4, dtype=torch.int64))
    assert torch.equal(world.observe(), observe(world.state, cfg))
    with pytest.raises(UserError, match="neighbor_view"):
        SeaConfig(neighbor_view="sonar")  # type: ignore[arg-type]
