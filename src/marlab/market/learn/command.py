"""`marlab market train` and `marlab market eval-l2`: their flags. `phases` and `evaluate` do the work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from marlab.lab.command import RunCommand
from marlab.lab.errors import UserError
from marlab.lab.flags import OldFlags, parse
from marlab.lab.runs.files import write_json
from marlab.lab.runs.judged import Judged
from marlab.market.learn.settings import PHASES, Phase, TrainSettings
from marlab.market.samples.options import GoalSource

PRESETS = Path(__file__).parents[1] / "presets" / "train"
JUDGED_BY: dict[Phase, Judged] = {
    "l2": Judged(("L2 Q RMSE, val",), "l2_bc/val/loss", "lower"),
    "l3": Judged(("L3 mae_q, val",), "l3_bc/val/loss", "lower"),
    "awr": Judged(("L3 after AWR mae_q, val",), "l3_awr/val/loss", "lower"),
    "l4": Judged(("L4 KL, val",), "l4_distill/val/loss", "lower"),
}


@dataclass(frozen=True)
class MarketTrainConfig(TrainSettings):
    """Learning of the four layers from samples."""

    COMMON: ClassVar = (
        "phases", "l3_goals", "l2_epochs", "l3_epochs", "awr_epochs", "l4_epochs", "l2_lr", "l3_lr", "awr_lr",
        "l4_lr", "l2_batch_size", "l3_batch_size", "l4_batch_size", "patience", "seed", "device",
    )  # fmt: skip
    data: Path = Path()
    """Run directory of `marlab market samples`, or the folder with its dataset.json."""
    phases: str = "l2,l3,l4"
    """Which of l2, l3, awr, l4 to do, in this order."""
    l3_goals: GoalSource = "l2"
    """Goals that L3 and L4 are told: of the trained L2, the day's label, or none."""
    l2_model_path: Path | None = None
    """L2 weights (or their folder) for the goals, where this run does not train L2 itself."""
    l3_model_path: Path | None = None
    """L3 weights that the phase awr starts from, where this run does not train L3 itself."""

    def __post_init__(self) -> None:
        super().__post_init__()
        chosen = self.chosen
        if not chosen:
            raise UserError("--phases names no phase, expected some of l2, l3, awr, l4.")
        needs_l2 = self.l3_goals == "l2" and any(phase != "l2" for phase in chosen)
        if needs_l2 and "l2" not in chosen and self.l2_model_path is None:
            raise UserError(
                "The goals of L3 and L4 come from L2: train it too (--phases l2,...) or give --l2-model-path."
            )
        if "awr" in chosen and "l3" not in chosen and self.l3_model_path is None:
            raise UserError("The phase awr starts from a cloned L3: add l3 to --phases or give --l3-model-path.")

    @property
    def judged_by(self) -> Judged:
        """What the last phase gets wrong on the validation worlds."""
        return JUDGED_BY[self.chosen[-1]]

    @property
    def chosen(self) -> list[Phase]:
        """The phases to do, in their fixed order."""
        asked = [part.strip() for part in self.phases.split(",") if part.strip()]
        for name in asked:
            if name not in PHASES:
                raise UserError(f"--phases names '{name}', expected some of {', '.join(PHASES)}.")
        return [phase for phase in PHASES if phase in asked]


@dataclass(frozen=True)
class EvalL2Config:
    """Errors of L2's goals on a split."""

    run: Path = Path()
    """Run directory of `marlab market train`, or L2 weights together with --data."""
    split: Literal["train", "val", "test"] = "val"
    """Which worlds to judge on."""
    data: Path | None = None
    """Samples to judge on; by default those the run learnt from."""
    device: str = "auto"
    """cpu, cuda, cuda:N or auto."""
    output_dir: Path | None = None
    """Also write the figures to eval_l2_SPLIT.json in this folder."""


RENAMED = dict.fromkeys(("l3_goal_backfill", "l4_goal_source"), ("--l3-goals",))
_SAMPLES = "samples are made once, by `marlab market samples`, with its own options"
_LOADING = "samples are memory-mapped and need no loader processes"
REFUSED = {
    **dict.fromkeys(
        ("tournament_dir", "agent_name", "num_workers", "stats_only", "stats_sample", "allow_csv", "val_ratio",
         "test_ratio", "split_seed", "regen_split"), _SAMPLES,
    ),
    **dict.fromkeys(
        ("l3_pre_tensorize", "tensorize_workers", "dataloader_workers", "dataloader_pin_memory",
         "dataloader_persistent_workers", "dataloader_prefetch_factor", "dataloader_drop_last"), _LOADING,
    ),
    "l3_awr": "name the phase awr in --phases",
    "no_resume": "a run continues only with --resume",
    "l2_backfill_device": "goals are filled in on --device",
    "l2_backfill_batch_size": "goals are filled in on --device, in batches that fit",
    "backfill_world_chunk": "goals are filled in on --device, in batches that fit",
    "batch_log_every": "metrics.jsonl has every epoch",
    "no_progress_bar": "output that is not a terminal has plain lines by itself",
}  # fmt: skip
main = RunCommand(
    "market train", MarketTrainConfig, "marlab.market.learn.phases:train", presets=PRESETS, positional=("data",),
    old=OldFlags(renamed=RENAMED, refused=REFUSED),
)  # fmt: skip


def eval_l2_main(argv: Sequence[str]) -> int:
    """`marlab market eval-l2 RUN [--split val]`"""
    config = parse(EvalL2Config, argv, prog="marlab market eval-l2", positional=("run",))
    from marlab.market.learn.evaluate import eval_l2, show

    report = eval_l2(config)
    if config.output_dir is not None:
        write_json(config.output_dir / f"eval_l2_{config.split}.json", report)
    show(report, config.split)
    return 0
