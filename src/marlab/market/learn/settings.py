"""Settings of offline learning: one dataclass for the command line and for the guide's `TrainConfig`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from marlab.lab.checks import WIDEST, at_least, at_most, positive
from marlab.lab.errors import UserError
from marlab.market.networks import QTransform, ResidualLoss
from marlab.market.samples.options import SampleOptions

Phase = Literal["l2", "l3", "awr", "l4"]
PHASES: tuple[Phase, ...] = ("l2", "l3", "awr", "l4")
NAMES: dict[Phase, str] = {"l2": "l2_bc", "l3": "l3_bc", "awr": "l3_awr", "l4": "l4_distill"}
"""What a phase's files are called."""


class Stage(NamedTuple):
    """Some epochs at one learning rate."""

    epochs: int
    lr: float


@dataclass(frozen=True)
class TrainSettings:
    """How the layers learn from samples."""

    l2_epochs: int = 10
    """Epochs of L2 in all, a resumed training's earlier ones included."""
    l3_epochs: int = 10
    """Epochs of L3's behaviour cloning in all."""
    awr_epochs: int = 5
    """Epochs of L3's advantage-weighted regression in all."""
    l4_epochs: int = 10
    """Epochs of L4's distillation in all."""
    l2_lr: float = 3e-4
    """Learning rate of L2."""
    l3_lr: float = 1e-4
    """Learning rate of L3's behaviour cloning."""
    awr_lr: float = 5e-5
    """Learning rate of L3's advantage-weighted regression."""
    l4_lr: float = 3e-4
    """Learning rate of L4."""
    l2_stages: str = ""
    """Stages as epochs:rate, such as 40:3e-4,10:1e-4,10:5e-5; they replace l2_epochs and l2_lr."""
    l3_stages: str = ""
    """The same for L3's behaviour cloning."""
    awr_stages: str = ""
    """The same for L3's advantage-weighted regression."""
    l4_stages: str = ""
    """The same for L4."""
    l2_batch_size: int = 512
    """Days in a batch."""
    l3_batch_size: int = 256
    """Decisions in a batch."""
    l4_batch_size: int = 64
    """Rounds in a batch."""
    l2_q_transform: QTransform = "none"
    """How quantities are compared: as they are, by log(1 + Q), or by their root."""
    l2_q_weight: float = 1.0
    """Weight of quantities beside prices."""
    l3_plan: Literal["E", "F"] = "E"
    """E: residuals on L1's baseline; F: the network names the action itself."""
    l3_residual_loss: ResidualLoss = "mse"
    """How residuals are compared: squares, or squares that grow linearly from a tenth of a unit on."""
    l3_width: int = 128
    """Width of the L3 network."""
    l3_layers: int = 4
    """Layers of the L3 network."""
    gamma: float = 0.98
    """Discount per day of the returns that advantages are made of."""
    patience: int = 0
    """Stop a phase after this many epochs without a better validation loss; 0 never does."""
    save_every: int = 1
    """Epochs between checkpoints."""
    allow_zero_goal: bool = False
    """Train L3 even if more than 1 % of the days have a goal of zeros."""
    seed: int = 42
    """Seed of weights, shuffling and dropout."""
    device: str = "auto"
    """cpu, cuda, cuda:N or auto."""

    # constants of the command; the guide's TrainConfig lets them be changed
    l2_positive = True
    """L2's quantities go through softplus, so that none is negative."""
    dropout = 0.1
    """Share of L3's activations that is dropped in training."""
    awr_beta = 1.0
    """Temperature of advantages: larger is closer to plain cloning."""
    awr_clip = 20.0
    """Largest weight of a decision before weights are brought to mean 1."""
    weight_decay = 1e-4
    """AdamW's weight decay."""
    max_grad_norm = 0.5
    """Largest norm of the gradient."""
    mixed_precision = True
    """On a GPU, compute L3 in bfloat16 where it pays; a CPU always uses float32."""
    compile = False
    """Fuse L3's step with torch.compile."""

    def __post_init__(self) -> None:
        at_least(self, 1, "l2_batch_size", "l3_batch_size", "l4_batch_size", "save_every", "l3_layers")
        at_least(self, 0, "patience")
        at_most(self, WIDEST, "l3_width")
        at_most(self, 100, "l3_layers")
        positive(self, "l2_q_weight", "awr_beta", "awr_clip", "max_grad_norm")
        if not 0 <= self.dropout < 1 or not 0 < self.gamma <= 1:
            raise UserError(f"dropout is {self.dropout:g} and gamma {self.gamma:g}, expected shares below 1.")
        if self.l3_width < 4 or self.l3_width % 4:
            raise UserError(f"l3_width is {self.l3_width}, expected a multiple of 4: there are 4 attention heads.")
        for phase in PHASES:
            self.stages(phase)

    def stages(self, phase: Phase) -> list[Stage]:
        """The learning-rate stages of a phase."""
        text = getattr(self, f"{phase}_stages")
        if not text:
            return [_checked(Stage(getattr(self, f"{phase}_epochs"), getattr(self, f"{phase}_lr")), phase)]
        try:
            pairs = [part.split(":") for part in text.split(",")]
            return [_checked(Stage(int(epochs), float(lr)), phase) for epochs, lr in pairs]
        except ValueError:
            raise UserError(
                f"{phase}_stages is '{text}', expected epochs:rate pairs such as 40:3e-4,10:1e-4."
            ) from None

    def epochs(self, phase: Phase) -> int:
        """All epochs of a phase."""
        return sum(stage.epochs for stage in self.stages(phase))

    def lr_at(self, phase: Phase, epoch: int) -> float:
        """Learning rate of an epoch, counted from 0; beyond the last stage, that of the last."""
        for stage in self.stages(phase):
            if epoch < stage.epochs:
                return stage.lr
            epoch -= stage.epochs
        return self.stages(phase)[-1].lr


def _checked(stage: Stage, phase: str) -> Stage:
    if stage.epochs < 0 or not stage.lr > 0:
        raise UserError(
            f"{phase} is to learn {stage.epochs} epochs at rate {stage.lr:g}; expected epochs >= 0 and a rate > 0."
        )
    return stage


@dataclass(frozen=True)
class TrainConfig(TrainSettings):
    """The guide's config of `HRLXFTrainer`: settings, a folder, and checkpoints to go on from."""

    output_dir: str | Path = "checkpoints"
    """Where weights and checkpoints are written."""
    horizon: int = 40
    """Days a plan looks ahead; that of the samples and the networks."""
    l2_positive: bool = True
    dropout: float = 0.1
    awr_beta: float = 1.0
    awr_clip: float = 20.0
    weight_decay: float = 1e-4
    max_grad_norm: float = 0.5
    mixed_precision: bool = True
    compile: bool = False
    l2_resume_path: str | Path | None = None
    """Checkpoint (`*.ckpt.pt`) that L2 continues from."""
    l3_bc_resume_path: str | Path | None = None
    """Checkpoint that L3's behaviour cloning continues from."""
    l3_awr_resume_path: str | Path | None = None
    """Checkpoint that L3's advantage-weighted regression continues from."""
    l4_resume_path: str | Path | None = None
    """Checkpoint that L4's distillation continues from."""
    sample_options: SampleOptions | None = None
    """How the samples were made, for records and files that do not say it themselves; weights keep it for play."""
