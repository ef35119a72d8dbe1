"""The settings of the world model and its training."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from marlab.lab.checks import at_least, positive
from marlab.lab.errors import UserError

ModelKind = Literal["structured", "dense"]


@dataclass(frozen=True)
class PretrainWorldConfig:
    """The world model and its training."""

    KIND: ClassVar[str] = "hunt/world-model"  # in run.json, so that other commands know what the run holds
    data: Path = Path("runs/hunt/data")
    """Run directory of `marlab hunt collect`."""
    rows: int = 50_000
    """Transitions to use, over all splits, in whole episodes; 0 takes all."""
    model: ModelKind = "structured"
    """structured predicts moves, captures and rewards as choices; dense regresses every cell, as the original did."""
    channel_weights: tuple[float, ...] = ()
    """dense: weight of each channel in the loss, normalised by their sum; the lab note used 2 2 2 2 1 1 1."""
    epochs: int = 30
    """Passes over the training split, at most."""
    patience: int = 20
    """Stop after so many epochs without a better validation loss."""
    batch_size: int = 256
    """Rows per gradient step."""
    learning_rate: float = 1e-3
    """Adam's step size at the start; it falls along a cosine."""
    seed: int = 0
    """Seed of the weights and of the order of rows."""
    device: str = "auto"
    """Where to compute: cpu, cuda, cuda:N, or auto for a GPU where there is one."""

    def __post_init__(self) -> None:
        positive(self, "epochs", "patience", "batch_size", "learning_rate")
        at_least(self, 0, "rows")
        if self.channel_weights and self.model != "dense":
            raise UserError("channel_weights belong to --model dense; the structured model has no per-cell loss.")
