"""The network of a player, and trained ones as a policy."""

from __future__ import annotations

import pytest
import torch

from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.game.views import View
from marlab.hunt.ppo.config import NetworkConfig
from marlab.hunt.ppo.network import NetworkPolicy, PlayerNet
from marlab.hunt.ppo.train import PPOTrainer
from tests.hunt.helpers import seeded
from tests.hunt.ppo_cases import TINY, small


def test_learner_sees_the_game_from_its_own_seat() -> None:
    trainer = PPOTrainer(small(game=game_config("msh_4x4"), agent_roles="NS,NS,PPO,NS"))
    world = trainer.world.world
    assert world.seats.tolist() == [2]
    expected = View(world.game, world.state).flat(torch.tensor([2]))
    assert torch.equal(trainer.world.observe().obs, expected)


def test_value_after_logits_is_the_value() -> None:
    game = make_game(TINY)
    net = PlayerNet(game, NetworkConfig(hidden=(16, 8)), seeded(0))
    obs = View(game, game.reset(5, seeded(1))).flat(torch.arange(2))
    alone = net.value(obs)
    net.logits(obs)
    assert torch.equal(net.value(obs), alone)
    with torch.no_grad():
        net.logits(obs)
    assert net.value(obs).requires_grad  # features made without gradients are not taken
    net.logits(obs)
    net.value(obs)
    with torch.no_grad():
        net.critic.bias += 1.0
        next(net.body.parameters()).mul_(0.5)
    fresh = net.value(obs)  # the same tensor again, after the weights changed: nothing old is used
    assert not torch.allclose(fresh, alone + 1.0)


def test_network_policy_keeps_to_the_rules() -> None:
    game = make_game(TINY)
    nets = [PlayerNet(game, NetworkConfig(hidden=(8,)), seeded(i)) for i in range(2)]
    policy = NetworkPolicy(game, nets, [1, 0])
    view = View(game, game.reset(500, seeded(2)))
    chances = policy.probabilities(view, {})
    assert bool((chances[~view.mask] == 0).all())
    torch.testing.assert_close(chances.sum(2), torch.ones(500, 2))
    actions, _ = policy.act(view, {}, seeded(3))
    assert bool(view.mask.gather(2, actions.unsqueeze(2)).all())
    flat = view.flat(torch.tensor([0]))  # seat 0 belongs to network 1
    torch.testing.assert_close(
        policy.logits(view)[:, 0][view.mask[:, 0]], nets[1].logits(flat)[:, 0][view.mask[:, 0]].detach()
    )
    with pytest.raises(ValueError, match="do not fit"):
        NetworkPolicy(game, nets, [0, 2])
