"""The settings of models of other players: how they are pretrained, and how beliefs move."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from marlab.lab.checks import WIDEST, at_least, at_most, positive
from marlab.lab.errors import UserError

CODE_WIDTH = 16
TRAINING_DISCOUNT = 0.995
"""Half of an old episode's weight is left after 138 episodes: for training, where co-players change slowly."""
GoalSource = Literal["history", "state", "type", "outcome", "none"]
Balance = Literal["none", "sqrt", "full"]
Objective = Literal["recon", "moa", "joint"]
ReconLoss = Literal["bce", "mse"]
KL_SCHEDULES: dict[Objective, tuple[float, float]] = {"recon": (1e-3, 1e4), "moa": (5e-5, 2e4), "joint": (1e-3, 1e4)}
"""(largest KL factor, time constant in optimiser steps) of each objective."""


@dataclass(frozen=True)
class BeliefConfig:
    """How beliefs move."""

    floor: float = 1e-3
    """Least likelihood an observed action is given, so that no goal is ever ruled out for good."""
    mixing: float = 0.01
    """Share of the episode's prior mixed in after every step; lets goals change within an episode."""
    discount: float = 0.9
    """Weight an episode keeps when the next one ends: 0.9 adapts in a few episodes, training uses 0.995."""
    strength: float = 1.0
    """Weight of the even prior, in episodes."""
    lasting: float = 0.0
    """How probable it is of a stranger that it keeps what it is after from episode to episode; 0: goals of past
    episodes are counted as if everybody drew anew."""
    intra: bool = True
    """Learn from the actions within an episode."""
    inter: bool = True
    """Learn from the goals of past episodes."""

    def __post_init__(self) -> None:
        for name in ("floor", "mixing"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"belief {name} is {getattr(self, name):g}, expected 0 or more and below 1.")
        if not 0 < self.discount <= 1:
            raise UserError(f"belief discount is {self.discount:g}, expected a value above 0 and at most 1.")
        if not 0 <= self.lasting < 1:
            raise UserError(f"belief lasting is {self.lasting:g}, expected 0 or more and below 1.")
        if not self.strength > 0:
            raise UserError(f"belief strength is {self.strength:g}, expected a value above 0.")


@dataclass(frozen=True)
class PretrainGoalsConfig:
    """What to learn about other players, from which data."""

    COMMON: ClassVar = (
        "goal_source", "vae_loss", "kl_max", "horizon", "hidden", "paths", "epochs", "batch_size", "learning_rate",
        "overfit_check", "belief_games", "device", "seed",
    )  # fmt: skip
    KIND: ClassVar[str] = "hunt/goals"  # in run.json, so that other commands know what the run holds
    data: Path = Path()
    """Run directory of `marlab hunt collect`."""
    goal_source: GoalSource = "history"
    """Where a row's goal comes from: a code of the steps so far, a code of the situation alone, the player's true type,
    what it captured in the end, or no goal at all."""
    vae_loss: Objective = "joint"
    """What trains the autoencoder: reconstruction, prediction of actions, or both."""
    recon_loss: ReconLoss = "bce"
    """Reconstruction error of planes: cross-entropy, or the square error of the original."""
    kl_max: float | None = None
    """Largest weight of the KL term; by default that of the objective (1e-3, for `moa` 5e-5)."""
    outcome_weight: float = 1.0
    """History: weight of foretelling from the code what the player will have captured in the end."""
    horizon: int = 10
    """History: how many steps ahead the situation lies that a player is said to head for."""
    hidden: int = 128
    """Width of the hidden layers of the history encoder and of the predictor of actions."""
    paths: bool = False
    """They are also told the shortest ways to stag and hare; planners must be told the same."""
    class_balance: Balance = "sqrt"
    """How much more rare actions weigh in the loss: not, by the root of their rarity, or fully."""
    epochs: int = 12
    """Passes over the training rows, in all stages together."""
    vae_epochs: int | None = None
    """History: how many of them train the autoencoder first; by default a third."""
    prototype_epochs: int | None = None
    """History: how many of them, at the end, train the predictor of actions alone, given prototypes; by default half of
    what the autoencoder leaves."""
    batch_size: int = 256
    """Rows of an optimiser step (whole sequences with about as many rows in the history stage)."""
    learning_rate: float = 5e-3
    """Adam step size."""
    overfit_check: bool = True
    """First see whether the predictor can learn one batch by heart."""
    belief_games: int = 128
    """Games in which beliefs with the finished models are measured; 0 leaves that out."""
    legacy_double_softmax: bool = False
    """Feed probabilities to the cross-entropy, as the original did."""
    legacy_post_exit_rows: bool = False
    """Train also on rows of players who left, as if they stayed."""
    device: str = "auto"
    """Where to compute: cpu, cuda, cuda:N, or auto for a GPU where there is one."""
    seed: int = 0
    """Seed of everything random."""

    def __post_init__(self) -> None:
        at_least(self, 1, "epochs", "hidden", "horizon")
        at_most(self, WIDEST, "hidden")
        at_least(self, 2, "batch_size")
        at_least(self, 0, "belief_games")
        positive(self, "learning_rate")
        before, history, after = self.stages
        if self.goal_source == "history" and min(before, history, after + 1) < 1:
            raise UserError(
                f"vae_epochs is {before} and prototype_epochs {after} of {self.epochs} epochs; the history encoder "
                "needs at least one epoch of the autoencoder before it and one of its own."
            )

    @property
    def stages(self) -> tuple[int, int, int]:
        """History: epochs of the autoencoder, of the history encoder, and of prototypes."""
        before = max(1, self.epochs // 3) if self.vae_epochs is None else self.vae_epochs
        left = self.epochs - before
        after = max(0, min((left + 1) // 2, left - 1)) if self.prototype_epochs is None else self.prototype_epochs
        return before, left - after, after

    @property
    def kl_schedule(self) -> tuple[float, float]:
        """(largest KL weight, time constant in steps)."""
        largest, tau = KL_SCHEDULES[self.vae_loss]
        return (largest if self.kl_max is None else self.kl_max), tau
