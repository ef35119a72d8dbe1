"""The predator that learned: its view by hand, its limits, its file, and the mode that plays it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.learned import (
    CHOICES,
    INPUTS,
    LearnedPredator,
    load_predator,
    look,
    make_predator,
    obey,
    save_predator,
)
from marlab.fish.sea.predators import predator_step
from marlab.fish.sea.reset import seeded_reset
from marlab.fish.sea.seas import SEAS
from marlab.lab.errors import UserError
from tests.fish.build import sea_of

CFG = SEAS["intercept"]


def test_it_sees_in_its_own_frame() -> None:
    fish = [(3.0, 4.0), (3.0, 1.0), (3.0, -7.0)]  # 3 m ahead, at its own place moved by 0, and out of sight
    state = sea_of(fish, [(0.0, 2.0), (1.0, 0.0), (0.0, 0.0)], predator=(3.0, 1.0), predator_velocity=(0.0, 1.2))
    seen = look(state, CFG)[0]
    assert seen.shape == (INPUTS,)
    assert float(seen[0]) == pytest.approx(1.2 / 2.4)
    assert float(seen[1]) == pytest.approx(1 - math.hypot(3, 1) / 10)
    assert seen[2:5].tolist() == pytest.approx([-0.1, 0.3, 1.0])  # the centre is 1 m behind and 3 m to the left
    assert seen[5:10].tolist() == pytest.approx([0.0, 0.0, 0.0, -0.5, 1.0])  # +x is to its right
    assert seen[10:15].tolist() == pytest.approx([0.5, 0.0, 1.0, 0.0, 1.0])
    assert not seen[15:].any()


def test_every_choice_keeps_the_limits_of_intercept() -> None:
    state = sea_of([(5.0, 5.0)], predator=(0.0, 0.0), predator_velocity=(2.4, 0.0), dtype=torch.float64)
    turns, speeds = [], []
    for choice in range(CHOICES):
        after = obey(state, CFG, torch.tensor([choice])).predator
        turns.append(math.atan2(float(after.vy), float(after.vx)))
        speeds.append(math.hypot(float(after.vx), float(after.vy)))
    limit = CFG.predator_turn_rate * sea.DT
    assert turns == pytest.approx([-limit, -limit / 2, 0, limit / 2, limit] * 2)
    assert speeds == pytest.approx([2.4] * 5 + [2.0] * 5)  # slowing down takes time: 4 m/s per second


def test_a_file_of_it_is_a_mode_of_the_sea(tmp_path: Path) -> None:
    net = make_predator((8,), torch.Generator().manual_seed(0))
    predator = LearnedPredator(net, (8,), 3)
    save_predator(predator, tmp_path / "shark.pt")
    assert load_predator(tmp_path / "shark.pt").step == 3
    cfg = replace(CFG, num_fish=3, predator_mode="learned", predator_policy=str(tmp_path / "shark.pt"))
    state, _ = seeded_reset([1, 2], cfg)
    for got, expected in zip(predator_step(cfg)(state), predator.step_in(cfg)(state)):
        assert torch.equal(got, expected)
    with pytest.raises(UserError, match="belong together"):
        SeaConfig(predator_mode="learned")
    with pytest.raises(UserError, match="does not exist"):
        predator_step(replace(cfg, predator_policy="nowhere.pt"))
