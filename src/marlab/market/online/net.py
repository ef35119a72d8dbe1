"""The learner's networks in torch: logits around the rule, and a critic that may see more than the player."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from marlab.lab.errors import UserError
from marlab.lab.ppo.nets import ActorCritic
from marlab.market.networks.around import AroundNet, Floats
from marlab.market.rules import around
from marlab.market.rules.around import BOUND, Freedom


class AroundRule(ActorCritic):
    """[*, D] -> [*, C] logits with the prior of the rule; a critic [*, Dc] -> [*]."""

    def __init__(
        self,
        hidden: tuple[int, ...],
        critic_size: int,
        bonus: float,
        generator: torch.Generator,
        freedom: Freedom = BOUND,
    ) -> None:
        super().__init__(around.INPUTS, around.HEADS, hidden, critic_size, "relu", generator)
        nn.init.zeros_(self._linear()[-1].weight)  # untrained, only the prior speaks
        self.bonus, self.freedom, self.hidden, self.critic_size = bonus, freedom, tuple(hidden), critic_size
        self.prior: Tensor
        self.register_buffer("prior", torch.tensor(around.prior(bonus)), persistent=False)

    def logits(self, obs: Tensor) -> Tensor:
        """[*, D] -> [*, C]"""
        return self.policy(obs) + self.prior

    def _linear(self) -> list[nn.Linear]:
        return [layer for layer in self.policy if isinstance(layer, nn.Linear)]

    def weaken(self) -> None:
        """Begin badly: what the rule would do is the least likely."""
        with torch.no_grad():
            self._linear()[-1].bias.copy_(-2 * self.prior.clamp(min=0))

    def plain(self) -> AroundNet:
        """The same for play in numpy."""
        return AroundNet(arrays_of(self.policy), self.bonus, freedom=self.freedom)

    def start_from(self, net: AroundNet) -> None:
        """Take over the policy of an earlier training; its layers must be as large."""
        if net.freedom != self.freedom:
            raise UserError("The network to start from learnt with other --may-leave or --outright; give the same.")
        shift = torch.tensor(around.prior(net.bonus)).to(self.prior) - self.prior  # the same logits with another prior
        layers, shapes = self._linear(), [tuple(weight.shape) for weight, _ in net.layers]
        if shapes != [tuple(layer.weight.shape) for layer in layers]:
            raise UserError(f"The network to start from has layers {shapes}; give the same --hidden.")
        with torch.no_grad():
            for layer, (weight, bias) in zip(layers, net.layers):
                layer.weight.copy_(torch.as_tensor(np.asarray(weight)))
                layer.bias.copy_(torch.as_tensor(np.asarray(bias)))
            layers[-1].bias.add_(shift)

    @classmethod
    def of(cls, net: AroundNet) -> AroundRule:
        """The network of a file, to play in the vector market; its critic knows nothing."""
        hidden = tuple(len(bias) for _, bias in net.layers[:-1])
        generator = torch.Generator().manual_seed(0)
        found = cls(hidden, net.inputs, net.bonus, generator, net.freedom)
        found.start_from(net)
        return found


def arrays_of(layers: nn.Sequential) -> tuple[tuple[Floats, Floats], ...]:
    """Weights and biases of linear layers for numpy."""
    found = []
    for layer in layers:
        if isinstance(layer, nn.Linear):
            found.append(tuple(part.detach().cpu().numpy().copy() for part in (layer.weight, layer.bias)))
    return tuple((weight, bias) for weight, bias in found)
