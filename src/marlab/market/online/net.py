"""The learner's networks in torch: logits around the rule, and a critic that may see more than the player."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from marlab.lab.errors import UserError
from marlab.lab.ppo.nets import ActorCritic
from marlab.market.networks.around import AroundNet, Floats
from marlab.market.rules import around
from marlab.market.rules.beliefs import Observer
from marlab.market.rules.outlook import outlook_size


class AroundRule(ActorCritic):
    """[*, D] -> [*, C] logits with the prior of the rule; a critic [*, Dc] -> [*]."""

    def __init__(
        self, hidden: tuple[int, ...], critic_size: int, bonus: float, generator: torch.Generator,
        observer: Observer | None = None,
    ) -> None:  # fmt: skip
        inputs = around.INPUTS + outlook_size(observer)
        super().__init__(inputs, around.HEADS, hidden, critic_size, "relu", generator)
        last = self.policy[-1]
        assert isinstance(last, nn.Linear)
        nn.init.zeros_(last.weight)  # untrained, only the prior speaks
        self.bonus, self.observer, self.hidden, self.critic_size = bonus, observer, tuple(hidden), critic_size
        self.prior: Tensor
        self.register_buffer("prior", torch.tensor(around.prior(bonus)), persistent=False)

    def logits(self, obs: Tensor) -> Tensor:
        """[*, D] -> [*, C]"""
        return self.policy(obs) + self.prior

    def weaken(self) -> None:
        """Begin badly: what the rule would do is the least likely."""
        last = self.policy[-1]
        assert isinstance(last, nn.Linear)
        with torch.no_grad():
            last.bias.copy_(-2 * self.prior.clamp(min=0))

    def plain(self) -> AroundNet:
        """The same for play in numpy."""
        return AroundNet(arrays_of(self.policy), self.bonus, observer=self.observer)

    def start_from(self, net: AroundNet) -> None:
        """Take over the policy of an earlier training; its layers must be as large."""
        layers = [layer for layer in self.policy if isinstance(layer, nn.Linear)]
        shapes = [tuple(weight.shape) for weight, _ in net.layers]
        if shapes != [tuple(layer.weight.shape) for layer in layers]:
            raise UserError(f"The network to start from has layers {shapes}; give the same --hidden and --observer.")
        shift = torch.tensor(around.prior(net.bonus)).to(self.prior) - self.prior  # the same logits with another prior
        with torch.no_grad():
            for layer, (weight, bias) in zip(layers, net.layers):
                layer.weight.copy_(torch.as_tensor(np.asarray(weight)))
                layer.bias.copy_(torch.as_tensor(np.asarray(bias)))
            layers[-1].bias.add_(shift)


def arrays_of(layers: nn.Sequential) -> tuple[tuple[Floats, Floats], ...]:
    """Weights and biases of linear layers for numpy."""
    found = []
    for layer in layers:
        if isinstance(layer, nn.Linear):
            found.append(tuple(part.detach().cpu().numpy().copy() for part in (layer.weight, layer.bias)))
    return tuple((weight, bias) for weight, bias in found)
