"""The settings of the world model and its training."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from marlab.lab.checks import at_least, positive, share
from marlab.lab.errors import UserError

ModelKind = Literal["structured", "dense"]


@dataclass(frozen=True)
class PretrainWorldConfig:
    """The world model and its training."""

    KIND: ClassVar[str] = "hunt/world-model"  # in run.json, so that other commands know what the run holds
    data: Path = Path("runs/hunt/data")
    """Run directory of `marlab hunt collect`."""
    also_test: tuple[Path, ...] = ()
    """More data sets of the same game to measure the model on, such as one of players it never saw."""
    rows: int = 50_000
    """Transitions to use, over all splits, in whole episodes; 0 takes all."""
    model: ModelKind = "structured"
    """structured predicts moves, captures and rewards as choices; dense regresses every cell, as the original did."""
    width: int = 64
    """structured: channels of its convolutions."""
    channel_weights: tuple[float, ...] = ()
    """dense: weight of each channel in the loss, normalised by their sum; the lab note used 2 2 2 2 1 1 1."""
    unroll: int = 1
    """Imagined steps that the loss looks at; from the second on the model reads its own planes."""
    unroll_gamma: float = 0.95
    """Weight of every further unrolled step."""
    contrastive: float = 0.0
    """Weight of a loss that sets a player's true next place against all that it cannot reach."""
    contrastive_temperature: float = 0.5
    """Scale of the scores in that loss."""
    epochs: int = 30
    """Passes over the training split, at most."""
    patience: int = 20
    """Stop after so many epochs without a better validation loss."""
    batch_size: int = 256
    """Rows per gradient step."""
    learning_rate: float = 1e-3
    """Adam's step size at the start."""
    final_learning_rate: float = 1e-5
    """Where the cosine schedule ends."""
    max_grad_norm: float = 1.0
    """Gradients longer than this are scaled down."""
    seed: int = 0
    """Seed of the weights and of the order of rows."""
    device: str = "auto"
    """Where to compute: cpu, cuda, cuda:N, or auto for a GPU where there is one."""

    def __post_init__(self) -> None:
        positive(
            self, "width", "unroll", "contrastive_temperature", "epochs", "patience", "batch_size", "max_grad_norm"
        )
        positive(self, "unroll_gamma")
        share(self, "unroll_gamma")
        at_least(self, 0, "rows", "contrastive")
        if not 0 < self.final_learning_rate <= self.learning_rate:
            raise UserError(
                f"final_learning_rate is {self.final_learning_rate:g}, expected above 0 and at most learning_rate "
                f"({self.learning_rate:g})."
            )
        if self.channel_weights and self.model != "dense":
            raise UserError("channel_weights belong to --model dense; the structured model has no per-cell loss.")
