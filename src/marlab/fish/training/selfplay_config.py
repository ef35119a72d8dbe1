"""Every setting of `marlab fish selfplay`; free of torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from marlab.lab.checks import WIDEST, at_least, at_most, positive
from marlab.lab.config import group
from marlab.lab.errors import UserError
from marlab.lab.ppo.config import PPOConfig
from marlab.lab.runs.judged import Judged

PPO_DEFAULT = PPOConfig(
    n_steps=64, batch_size=4096, n_epochs=3, learning_rate=1e-3, lr_schedule="cosine", gamma=0.99, entropy_coef=0.005
)


@dataclass(frozen=True)
class SelfPlayConfig:
    """Let a predator learn to hunt a shoal, then the shoal to escape it, and so on; both meet past opponents too."""

    KIND: ClassVar[str] = "fish/selfplay"
    judged_by: ClassVar = Judged(("last shoal against the worst predator",), "episode/survival")
    TITLE: ClassVar = "the self-play"

    shoal: str = ""
    """The first shoal: a checkpoint, run or policy file with 11 inputs, best one from the sea intercept; none: one that
    knows nothing."""
    rounds: int = 2
    """A round is a predator that learns, then a shoal that learns."""
    iterations: int = 60
    """Rollouts of one side in one round, with their updates."""
    num_envs: int = 128
    """Arenas that run side by side."""
    num_fish: int = 32
    """Fish per arena."""
    newest: float = 0.5
    """Share of the arenas with the newest opponent; the others share the rest."""
    shoal_batch_size: int = 32768
    """Fish per gradient step of a shoal; `batch_size` is that of predators, of which an arena has only one."""
    hidden: str = "128,128"
    """Hidden layers of the predator's networks, and of a shoal that knows nothing."""
    eval_arenas: int = 100
    """Held-out arenas of every pair in the final table."""
    seed: int = 0
    """Seed of everything random."""
    device: str = "auto"
    """Where to compute: auto, cpu, cuda or cuda:N."""

    ppo: PPOConfig = group(lambda: PPO_DEFAULT, "learning, of both sides")

    def __post_init__(self) -> None:
        positive(self, "rounds", "iterations", "num_fish", "eval_arenas", "shoal_batch_size")
        at_least(self, 8, "num_envs")
        at_most(self, 1_000_000, "num_envs", "num_fish", "eval_arenas")
        if not 0 < self.newest <= 1:
            raise UserError(f"newest is {self.newest:g}; it must be above 0 and at most 1.")
        _ = self.layers

    @property
    def layers(self) -> tuple[int, ...]:
        try:
            sizes = tuple(int(part) for part in self.hidden.split(","))
        except ValueError:
            sizes = ()
        if not sizes or not 1 <= min(sizes) <= max(sizes) <= WIDEST:
            raise UserError(f"hidden is '{self.hidden}', expected sizes such as 64,64.")
        return sizes

    @property
    def total(self) -> int:
        return 2 * self.rounds * self.iterations
