"""Worlds of clones beside real ones: the same configs, the same seats."""

from __future__ import annotations

import numpy as np
import torch

from marlab.market.clones.scores import Played, by_position, play_again
from marlab.market.vector.clones import ClonePack
from tests.market.clone_cases import named_worlds, small_pack


def test_every_config_is_played_in_its_seats() -> None:
    worlds = list(named_worlds()[:2])
    pack = ClonePack(("AS0", "PenguinAgent"), small_pack().weights)
    found = play_again(pack, worlds, 2, torch.device("cpu"), seed=0)
    for world, played in zip(worlds, found):
        assert played.agents == world.agents and played.clones.shape == (2, len(world.scores))
        assert np.isfinite(played.clones).all() and (played.real == world.scores).all()
    assert not (found[0].clones[0] == found[0].clones[1]).all()


def test_differences_are_taken_seat_by_seat() -> None:
    one = Played(("A", "B", "A"), np.array([0, 1, 2]), np.array([1.0, 2.0, 3.0]), np.array([[1.0, 1, 1], [2, 1, 2]]))
    table = by_position([one, one], "A")
    assert set(table) == {"first", "last", "all"} and table["first"]["seats"] == 2
    assert table["first"]["difference"].number == 0.5 and table["last"]["difference"].number == -1.5
    assert by_position([one], "B")["middle"]["clone"].number == 1.0
