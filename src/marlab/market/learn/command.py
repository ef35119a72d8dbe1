"""`marlab market train` and `marlab market eval-l2`: their flags. `phases` and `evaluate` do the work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import ClassVar, Literal

from marlab.lab.command import RunCommand, begins_anew
from marlab.lab.engine.tasks import config_of
from marlab.lab.errors import UserError
from marlab.lab.flags import OldFlags, Parsed, parse, parse_run
from marlab.lab.progress import stage
from marlab.lab.runs.files import write_json
from marlab.lab.runs.judged import Judged
from marlab.lab.runs.run import RunOptions, run_path
from marlab.lab.verdict import stored, texts
from marlab.market.learn.grow import epochs_done, goes_on, grown, told
from marlab.market.learn.settings import PHASES, Phase, TrainSettings
from marlab.market.samples.command import SamplesConfig
from marlab.market.samples.options import GoalSource
from marlab.market.samples.split import SplitOptions

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

    MAY_GROW: ClassVar = (
        "phases",
        "patience",
        "save_every",
        *(f"{phase}_{part}" for phase in PHASES for part in ("epochs", "lr", "stages")),
    )
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
    l2_start_path: Path | None = None
    """Weights that L2 begins with, instead of random ones."""
    l3_start_path: Path | None = None
    """Weights that L3 begins with, instead of random ones."""
    l4_start_path: Path | None = None
    """Weights that L4 begins with, instead of random ones."""

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


@dataclass(frozen=True)
class TrainCommand(MarketTrainConfig):
    """`marlab market train`: the training, and the samples to make first where only logs are given."""

    logs: str = ""
    """Logs to learn from instead of --data: their samples are made first, as `marlab market samples LOGS` would."""
    agent_name: str = "PenguinAgent"
    """With --logs: the expert."""
    workers: int | None = None
    """With --logs: processes that make the samples; 0 or nothing: one for each core."""
    split: SplitOptions = field(default_factory=SplitOptions)
    l3_awr: bool = False
    """Add the phase awr."""

    def samples_config(self) -> SamplesConfig:
        """The samples to make of the logs."""
        return SamplesConfig(logs=self.logs, agent_name=self.agent_name, split=self.split)

    def run_config(self) -> MarketTrainConfig:
        """What decides the weights."""
        config = config_of(self, MarketTrainConfig)
        if self.l3_awr and "awr" not in config.chosen:
            config = replace(config, phases=f"{config.phases},awr")
        if not self.logs:
            if config.data == Path():
                raise UserError(
                    "marlab market train learns from samples: name the run of `marlab market samples` that made them, "
                    "or give --logs, the run of `marlab market collect` to make them of."
                )
            return config
        if config.data != Path():
            raise UserError("Give samples (DATA) or --logs to make them of, not both.")
        return replace(config, data=run_path("market", self.samples_config(), RunOptions(), None))


RENAMED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("l3_goal_backfill", "l4_goal_source"), ("--l3-goals",)),
    "tournament_dir": ("--logs",),
    "num_workers": ("--workers",),
    "val_ratio": ("--split.val-ratio",),
    "test_ratio": ("--split.test-ratio",),
    "split_seed": ("--split.split-seed",),
    **{f"{phase}_learning_rate": (f"--{phase}-lr",) for phase in PHASES},
}
_LOADING = "samples are memory-mapped and need no loader processes"
_FILLING = "goals are filled in on --device, in batches that fit"
_LOADER_FLAGS = ("pin_memory", "persistent_workers", "drop_last")
OLD = OldFlags(
    renamed=RENAMED,
    refused={
        "stats_only": "`marlab market samples` makes the statistics, and nothing is trained.",
        "allow_csv": "logs are recorded worlds or tracker JSON; the simulator's tables lack what samples need.",
    },
    ignored={
        **dict.fromkeys(("l3_pre_tensorize", "no_l3_pre_tensorize", "tensorize_workers"), _LOADING),
        **dict.fromkeys(("dataloader_workers", "dataloader_prefetch_factor"), _LOADING),
        **{f"{no}dataloader_{name}": _LOADING for name in _LOADER_FLAGS for no in ("", "no_")},
        **dict.fromkeys(("l2_backfill_device", "l2_backfill_batch_size", "backfill_world_chunk"), _FILLING),
        "regen_split": "other samples are another run with a split of its own",
        "stats_sample": "the statistics are of all samples",
        "no_resume": "a run continues only with --resume",
        "batch_log_every": "metrics.jsonl has every epoch",
        "no_progress_bar": "output that is not a terminal has plain lines by itself",
    },
)


class _Train(RunCommand[TrainCommand]):
    """The command; with a training run in place of samples and --resume it goes on with that run."""

    def parse(self, argv: Sequence[str]) -> Parsed[TrainCommand]:
        going = goes_on(argv, MarketTrainConfig)
        if going is None:
            return super().parse(argv)
        path, stored = going
        done = epochs_done(path / "checkpoints")
        base = TrainCommand(**{f.name: getattr(stored, f.name) for f in fields(stored)})
        parsed = parse_run(TrainCommand, list(argv)[1:], prog=f"marlab {self.words}", old=self.old, base=base)
        config = grown(stored, parsed.config, done)
        for line in told(stored, config, done):
            print(line)
        return replace(parsed, config=config, options=replace(parsed.options, output_dir=path))


main = _Train(
    "market train", TrainCommand, "marlab.market.learn.phases:train", presets=PRESETS, positional=("data",), old=OLD
)


EVAL_OLD = OldFlags(
    ignored={
        "agent_name": "the samples of the run are those of its expert",
        "num_workers": "samples are made once and need no workers",
        "batch_size": "days are predicted in batches that fit",
    }
)


def eval_l2_main(argv: Sequence[str]) -> int:
    """`marlab market eval-l2 RUN [--split val]`"""
    config = parse(EvalL2Config, argv, prog="marlab market eval-l2", positional=("run",), old=EVAL_OLD)
    if config.run == Path() and config.output_dir is not None:  # where the old script was told the training
        config = replace(config, run=config.output_dir)
    with begins_anew("marlab market eval-l2"), stage("L2 on samples"):
        from marlab.market.learn.evaluate import eval_l2, show

        report = eval_l2(config)
    from marlab.market.learn.judge import verdict_of_goals

    sentences = verdict_of_goals(report)
    if config.output_dir is not None:
        write_json(config.output_dir / f"eval_l2_{config.split}.json", {**report, "verdict": stored(sentences)})
    show(report, config.split)
    print("\n".join(texts(sentences, str(config.run))))
    return 0
