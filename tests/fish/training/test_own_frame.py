"""Networks that see the tank from the fish: turning or mirroring the whole tank changes nothing but left and right."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.constants import LEFT, RIGHT
from marlab.fish.training.assemble import hidden_sizes
from marlab.fish.training.networks import Trained, load_policy, net_for, save_policy
from marlab.fish.training.own_frame import OWN_FEATURES, OwnFrameActorCritic, own_frame
from marlab.fish.training.train import FishTrainer
from marlab.lab.config import altered
from tests.fish.cases import SMALL

VECTORS = (0, 2, 6, 8, 12)
"""Where the pairs of an observation begin that have a direction."""


def seen(inputs: int) -> Tensor:
    """Observations of 64 fish; half of them see the predator, and one is at rest."""
    obs = torch.rand(64, inputs, generator=torch.Generator().manual_seed(3)) * 2 - 1
    obs[:, 5] = torch.arange(64) % 2
    obs[::2, 6:11] = 0.0
    return obs


def turned(obs: Tensor, angle: float, mirror: bool = False) -> Tensor:
    out, c, s = obs.clone(), math.cos(angle), math.sin(angle)
    if obs.shape[-1] == 59 and mirror:  # three times 16 rays, the first one ahead
        back = [-ray % 16 for ray in range(16)]
        out[:, 11:] = obs[:, 11:].unflatten(-1, (3, 16))[..., back].flatten(1)
    for first in {11: VECTORS, 18: VECTORS, 21: (*VECTORS[:-1], 11, 13, 16, 18), 59: VECTORS[:-1]}[obs.shape[-1]]:
        if first + 1 < obs.shape[-1]:
            x, y = obs[:, first], obs[:, first + 1] * (-1 if mirror else 1)
            out[:, first], out[:, first + 1] = c * x - s * y, s * x + c * y
    return out


@pytest.mark.parametrize("inputs", [11, 18, 21, 59])  # alone, a summary, two neighbours, rays
def test_a_turned_tank_changes_nothing_and_a_mirrored_one_exchanges_left_and_right(inputs: int) -> None:
    net = OwnFrameActorCritic(inputs, (5,), (16,), "relu", torch.Generator().manual_seed(0), attends=inputs == 21)
    last = [weight for name, weight in net.policy.named_parameters() if name.endswith("weight")][-1]
    torch.nn.init.normal_(last, generator=torch.Generator().manual_seed(1))
    obs = seen(inputs)
    logits, other = net.logits(obs), net.logits(turned(obs, 0.7, mirror=True))
    torch.testing.assert_close(net.logits(turned(obs, 2.1)), logits, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(net.value(turned(obs, 2.1, mirror=True)), net.value(obs), atol=1e-4, rtol=1e-4)
    assert not torch.allclose(logits[:, LEFT], logits[:, RIGHT])
    swapped = [0, RIGHT, LEFT, 3, 4]
    torch.testing.assert_close(other[:, swapped], logits, atol=1e-4, rtol=1e-4)


def test_the_predator_sees_the_fish_ahead_and_aside() -> None:
    """A predator 2 units east of the fish swims west: the fish is 2 units ahead of it and not aside."""
    obs = torch.zeros(11)
    obs[2], obs[5], obs[6], obs[8], obs[10] = 0.5, 1.0, 2.0, -1.0, 2.0
    features, _ = own_frame(obs)
    assert len(features) == OWN_FEATURES
    assert features[-2:].tolist() == [2.0, 0.0]
    obs[7] = 1.0  # and 1 unit to the left of the fish: the fish is 1 unit to the predator's left, seen from above
    assert own_frame(obs)[0][-2:].tolist() == [2.0, 1.0]


def test_a_fish_at_rest_has_finite_features() -> None:
    assert own_frame(torch.zeros(3, 18))[0].isfinite().all()


def test_the_policy_file_knows_its_frame(tmp_path: Path) -> None:
    sea = SeaConfig(include_neighbor_features=False)
    net = net_for(sea, (8,), "relu", torch.Generator().manual_seed(0), "own")
    save_policy(Trained(net, sea, (8,), "relu", 3, "own"), tmp_path / "p.pt")
    loaded = load_policy(tmp_path / "p.pt")
    assert loaded.frame == "own" and isinstance(loaded.net, OwnFrameActorCritic)
    assert torch.equal(loaded.net.logits(seen(11)), net.logits(seen(11)))


@pytest.mark.parametrize("view", ["nearest", "rays"])
def test_a_shoal_with_eyes_for_its_neighbours_trains_and_is_loaded_again(view: str, tmp_path: Path) -> None:
    settings = {"neighbor_view": view, "include_neighbor_features": True, "multi_eval_interval": 0}
    trainer = FishTrainer(altered(SMALL, policy_frame="own", **settings))
    trainer.iterate()
    hidden = hidden_sizes(trainer.config)
    save_policy(Trained(trainer.net, trainer.sea, hidden, trainer.config.activation, 1, "own"), tmp_path / "p.pt")
    obs = trainer.world.observe()
    assert torch.equal(load_policy(tmp_path / "p.pt").net.logits(obs), trainer.net.logits(obs))
