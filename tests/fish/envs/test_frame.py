"""The painter: things are where the sea says, in their colours, at any size."""

from __future__ import annotations

import numpy as np
import torch

from marlab.fish.envs.frame import FISH, GONE, PAGE, PREDATOR, WATER, Scene, paint
from tests.fish.build import sea_of


def test_fish_predator_and_the_eaten_are_in_their_places() -> None:
    state = sea_of([(5.0, 0.0), (0.0, -5.0), (-5.0, 5.0)], [(1.0, 0.0)] * 3, predator=(0.0, 5.0))
    state.alive[0, 1] = False
    state.exists[0, 2] = state.alive[0, 2] = False  # an empty slot is not drawn
    frame = paint(state)
    assert frame.shape == (800, 800, 3) and frame.dtype == np.uint8
    assert tuple(frame[400, 600]) == FISH
    assert tuple(frame[600, 400]) == GONE
    assert tuple(frame[200, 400]) == PREDATOR
    assert tuple(frame[200, 200]) == WATER
    assert tuple(frame[799, 0]) == PAGE
    assert tuple(frame[400, 594]) == FISH and tuple(frame[400, 606]) == WATER  # the tail points backwards


def test_edges_are_smooth_and_sizes_free() -> None:
    for size in (160, 401):
        frame = paint(sea_of([(9.99, 0.0), (0.0, -9.99), (0.02, 0.01)]), size=size)
        assert frame.shape == (size, size, 3)
    assert len(np.unique(paint(sea_of([(1.0, 1.0)])).reshape(-1, 3), axis=0)) > 20


def test_caption_counts_and_can_be_replaced() -> None:
    state = sea_of([(1.0, 1.0), (2.0, 2.0)])
    plain, other = paint(state, caption=""), paint(state, caption="worst episode")
    named = paint(state)
    changed = np.argwhere((plain != named).any(-1))
    assert len(changed) and changed[:, 0].max() < 60  # only the caption's corner
    assert (other != named).any()
    assert np.array_equal(named, paint(state, caption="2/2 alive, step 0"))


def test_scene_of_one_arena_of_many() -> None:
    state = sea_of([(1.0, 1.0)])
    two = type(state)(*(torch.cat((tensor, tensor)) for tensor in state))
    two.x[1] = 3.0
    assert Scene.of(two, 1).positions.tolist() == [[3.0, 1.0]]
