"""The learner's networks in torch: logits around the rule, and a critic that may see more than the player."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from marlab.lab.errors import UserError
from marlab.lab.ppo.nets import ActorCritic, mlp
from marlab.market.networks.around import AroundNet, Floats
from marlab.market.rules import around
from marlab.market.rules.around import BOUND, Freedom
from marlab.market.rules.beliefs import Observer
from marlab.market.rules.outlook import outlook_size


class AroundRule(ActorCritic):
    """[*, D] -> [*, C] logits with the prior of the rule; a critic [*, Dc] -> [*]."""

    def __init__(
        self, hidden: tuple[int, ...], critic_size: int, bonus: float, generator: torch.Generator,
        observer: Observer | None = None, freedom: Freedom = BOUND, per_level: bool = False,
    ) -> None:  # fmt: skip
        """`per_level`: the middle levels have a network of their own."""
        inputs = around.INPUTS + outlook_size(observer)
        super().__init__(inputs, around.HEADS, hidden, critic_size, "relu", generator)
        self.middle = mlp(inputs, hidden, around.CHOICES, 0.01, "relu", generator) if per_level else None
        for last in self._last():
            nn.init.zeros_(last.weight)  # untrained, only the prior speaks
        self.freedom = freedom
        self.bonus, self.observer, self.hidden, self.critic_size = bonus, observer, tuple(hidden), critic_size
        self.prior: Tensor
        self.register_buffer("prior", torch.tensor(around.prior(bonus)), persistent=False)

    def logits(self, obs: Tensor) -> Tensor:
        """[*, D] -> [*, C]"""
        found = self.policy(obs)
        if self.middle is not None:
            found = torch.where(obs[..., around.CAN_BUY, None] > 0, self.middle(obs), found)
        return found + self.prior

    def _policies(self) -> list[nn.Sequential]:
        return [self.policy] if self.middle is None else [self.policy, self.middle]

    def _last(self) -> list[nn.Linear]:
        """The layers whose outputs are logits."""
        return [layer for policy in self._policies() for layer in (policy[-1],) if isinstance(layer, nn.Linear)]

    def weaken(self) -> None:
        """Begin badly: what the rule would do is the least likely."""
        with torch.no_grad():
            for last in self._last():
                last.bias.copy_(-2 * self.prior.clamp(min=0))

    def take(self, layers: Sequence[tuple[Tensor, Tensor]]) -> None:
        """Play by weights and biases of the same sizes."""
        linear = [layer for layer in self.policy if isinstance(layer, nn.Linear)]
        with torch.no_grad():
            for layer, (weight, bias) in zip(linear, layers, strict=True):
                layer.weight.copy_(weight)
                layer.bias.copy_(bias)

    def plain(self) -> AroundNet:
        """The same for play in numpy."""
        middle = () if self.middle is None else arrays_of(self.middle)
        return AroundNet(
            arrays_of(self.policy), self.bonus, observer=self.observer, middle=middle, freedom=self.freedom
        )

    def start_from(self, net: AroundNet) -> None:
        """Take over the policy of an earlier training; its layers must be as large."""
        if net.middle and self.middle is None:
            raise UserError("The network to start from has one part for each level; give --per-level too.")
        if net.freedom != self.freedom:
            raise UserError("The network to start from learnt with other --may-leave or --outright; give the same.")
        shift = torch.tensor(around.prior(net.bonus)).to(self.prior) - self.prior  # the same logits with another prior
        for policy, own in zip(self._policies(), (net.layers, net.middle or net.layers)):
            layers = [layer for layer in policy if isinstance(layer, nn.Linear)]
            shapes = [tuple(weight.shape) for weight, _ in own]
            if shapes != [tuple(layer.weight.shape) for layer in layers]:
                raise UserError(
                    f"The network to start from has layers {shapes}; give the same --hidden and --observer."
                )
            with torch.no_grad():
                for layer, (weight, bias) in zip(layers, own):
                    layer.weight.copy_(torch.as_tensor(np.asarray(weight)))
                    layer.bias.copy_(torch.as_tensor(np.asarray(bias)))
                layers[-1].bias.add_(shift)

    @classmethod
    def of(cls, net: AroundNet) -> AroundRule:
        """The network of a file, to play in the vector market; its critic knows nothing."""
        hidden = tuple(len(bias) for _, bias in net.layers[:-1])
        generator = torch.Generator().manual_seed(0)
        found = cls(hidden, net.inputs, net.bonus, generator, net.observer, net.freedom, bool(net.middle))
        found.start_from(net)
        return found


def arrays_of(layers: nn.Sequential) -> tuple[tuple[Floats, Floats], ...]:
    """Weights and biases of linear layers for numpy."""
    found = []
    for layer in layers:
        if isinstance(layer, nn.Linear):
            found.append(tuple(part.detach().cpu().numpy().copy() for part in (layer.weight, layer.bias)))
    return tuple((weight, bias) for weight, bias in found)
