"""PPO on a world of your own: a corridor with a lamp at one end, many corridors at once, no run directory.

python -m examples.own_world
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from marlab.lab.ppo.choices import best
from marlab.lab.ppo.config import PPOConfig
from marlab.lab.ppo.nets import ActorCritic
from marlab.lab.ppo.ppo import PPO

CELLS, CORRIDORS = 7, 128


class Step(NamedTuple):
    reward: Tensor  # each [B, 1]: B corridors, one walker in each
    terminated: Tensor
    truncated: Tensor


class Corridor:
    """Walk left (0) or right (1) to the end with the lamp. It restarts one step late, as `marlab.lab.ppo.ppo` asks."""

    def __init__(self, generator: torch.Generator) -> None:
        self.generator, self.over = generator, torch.ones(CORRIDORS, 1, dtype=torch.bool)
        self.cell = self.lamp = torch.zeros(CORRIDORS, 1, dtype=torch.long)
        self.step(torch.zeros(CORRIDORS, 1, dtype=torch.long))  # everything is over, so this brings the first start

    @property
    def acting(self) -> Tensor:
        return ~self.over

    def observe(self) -> Tensor:
        return torch.cat([one_hot(self.cell, CELLS), self.lamp[..., None]], -1).float()  # [B, 1, CELLS + 1]

    def step(self, actions: Tensor) -> Step:
        begins = self.over
        self.cell = torch.where(begins, CELLS // 2, self.cell + 2 * actions - 1)
        self.lamp = torch.where(begins, torch.randint(2, begins.shape, generator=self.generator), self.lamp)
        self.over = ~begins & ((self.cell == 0) | (self.cell == CELLS - 1))
        right = self.cell == self.lamp * (CELLS - 1)
        return Step(torch.where(self.over, right * 2.0 - 1.0, 0.0), self.over, torch.zeros_like(self.over))


def main() -> float:
    """Train, then return the share of corridors in which the walker ends at the lamp."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    net = ActorCritic(CELLS + 1, heads=[2], hidden=[32], generator=generator)
    ppo = PPO(net, PPOConfig(n_steps=16, batch_size=512, learning_rate=3e-3), generator)
    world = Corridor(generator)
    for iteration in range(1, 21):
        rollout = ppo.collect(world)
        reward = float(rollout.reward[rollout.terminated].mean())
        learned = ppo.update(rollout, learning_rate=3e-3, entropy_coef=0.0)
        if iteration % 5 == 0:
            print(f"iteration {iteration}: mean reward {reward:+.2f}, entropy {learned['ppo/entropy']:.2f} nats")
    world = Corridor(generator)
    for _ in range(CELLS // 2):  # the way from the middle to either end
        world.step(best(net.logits(world.observe()), net.heads))
    return float((world.cell == world.lamp * (CELLS - 1)).float().mean())


if __name__ == "__main__":
    print(f"The trained walker finds the lamp in {main():.0%} of the corridors.")
