"""Paths are those of the probe, and the field is what the network does."""

from __future__ import annotations

import numpy as np
import torch

from marlab.fish.measure.pathfile import FIELD_CELLS, HEADINGS
from marlab.fish.measure.paths import Swimmer, follow, policy_field
from marlab.fish.measure.policies import scripted
from marlab.fish.measure.probe import run_probe
from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import SeaConfig
from marlab.fish.training.train import FishTrainer
from tests.fish.cases import SMALL

SEA = SeaConfig(num_fish=12, include_neighbor_features=False)


def test_paths_are_those_of_a_probe_in_the_same_arenas() -> None:
    seeds = [3, 4, 5]
    players = {"hold": Swimmer(scripted("hold"), SEA), "sidestep": Swimmer(scripted("sidestep"), SEA)}
    told = follow(players, seeds, keep=2)
    assert told["position"].shape == (2, 2, sea.EPISODE_STEPS + 1, 12, 2) and told["position"].dtype == np.float16
    assert told["predator"].shape == (2, 2, sea.EPISODE_STEPS + 1, 1, 2)
    for player, name in enumerate(players):
        probe = run_probe(scripted(name), SEA, seeds)
        assert (told["death_step"][player] == probe.death_steps).all()
        assert (told["death"][player] == probe.death_steps[:2]).all()
        eaten = told["death_step"][player] >= 0
        assert np.isfinite(told["death_place"][player][eaten]).all()
        assert np.isnan(told["death_place"][player][~eaten]).all()
    assert (told["position"][0, :, 0] == told["position"][1, :, 0]).all()  # both start from the same arena
    assert (told["action"][0] == sea.HOLD).all()


def test_who_is_eaten_is_eaten_where_the_predator_is() -> None:
    told = follow({"hold": Swimmer(scripted("hold"), SEA)}, [3, 4], keep=2)
    deaths = told["death"][0]
    assert (deaths > 0).any()
    for arena, fish in zip(*np.nonzero(deaths > 0)):
        step = deaths[arena, fish]
        place, hunter = told["position"][0, arena, step, fish], told["predator"][0, arena, step, 0]
        assert np.hypot(*(place.astype(float) - hunter)) < sea.KILL_DISTANCE + 0.02


def test_the_field_asks_the_network_at_every_place() -> None:
    trainer = FishTrainer(SMALL)
    action, chance = policy_field(trainer.net, trainer.sea)
    assert action.shape == chance.shape == (len(HEADINGS), FIELD_CELLS, FIELD_CELLS)
    assert (chance >= 0.2 - 1e-3).all() and (chance <= 1).all() and (action < sea.ACTION_COUNT).all()
    with torch.no_grad():
        for weight in trainer.net.parameters():
            weight.zero_()
    _, even = policy_field(trainer.net, trainer.sea)
    assert np.allclose(even.astype(float), 1 / sea.ACTION_COUNT, atol=1e-3)
