"""Small networks: their shapes, their first weights, and that only the generator decides them."""

from __future__ import annotations

import math

import torch
from torch import nn

from marlab.lab.ppo.nets import ActorCritic, mlp, orthogonal_linear


def test_orthogonal_weights_have_the_gain_asked_for() -> None:
    layer = orthogonal_linear(8, 4, 2.0, torch.Generator().manual_seed(0))
    torch.testing.assert_close(layer.weight @ layer.weight.T, 4.0 * torch.eye(4))
    assert torch.count_nonzero(layer.bias) == 0


def test_layers_and_gains_of_an_mlp() -> None:
    net = mlp(6, (5, 4), 3, 0.01, "relu", torch.Generator().manual_seed(0))
    assert [type(layer) for layer in net] == [nn.Linear, nn.ReLU, nn.Linear, nn.ReLU, nn.Linear]
    norms = [torch.linalg.matrix_norm(layer.weight, 2).item() for layer in net if isinstance(layer, nn.Linear)]
    torch.testing.assert_close(norms, [math.sqrt(2), math.sqrt(2), 0.01])


def test_the_generator_alone_decides() -> None:
    nets = []
    for seed in (1, 1, 2):
        torch.rand(seed)  # the global generator must not matter
        nets.append(ActorCritic(4, (2, 3), (8,), generator=torch.Generator().manual_seed(seed)))
    first, same, other = (nn.utils.parameters_to_vector(net.parameters()) for net in nets)
    assert torch.equal(first, same) and not torch.equal(first, other)


def test_a_critic_may_see_more_than_the_actor() -> None:
    net = ActorCritic(4, (2, 3), (8,), critic_size=10)
    assert net.logits(torch.zeros(7, 5, 4)).shape == (7, 5, 5)
    assert net.value(torch.zeros(7, 5, 10)).shape == (7, 5)
    assert ActorCritic(4, (2,), ()).value(torch.zeros(3, 4)).shape == (3,)
