"""`marlab market samples`: its flags. `make` does the work."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from marlab.lab.checks import at_least
from marlab.lab.command import RunCommand
from marlab.lab.engine.tasks import EngineFlags, config_of
from marlab.lab.flags import OldFlags
from marlab.market.rules.features import FeatureOptions
from marlab.market.rules.l1 import L1Options
from marlab.market.samples.options import GoalSource, SampleOptions
from marlab.market.samples.split import SplitOptions

PRESETS = Path(__file__).parents[1] / "presets" / "samples"


@dataclass(frozen=True)
class SamplesConfig:
    """Which logs become samples, and how."""

    logs: str = ""
    """A run of `marlab market collect` (its name or folder), or any folder below which logs are."""
    agent_name: str = "PenguinAgent"
    """The expert: a class name or how it begins; "all" takes every agent whose decisions were recorded."""
    goal_backfill: GoalSource = "none"
    """Goals told to L3 and L4: none (zeros), v2 (what the expert did that day), l2 (a trained L2's prediction)."""
    l2_model_path: Path | None = None
    """Weights of the L2 network for goal_backfill l2, or the folder that holds them."""
    l1: L1Options = field(default_factory=L1Options)
    features: FeatureOptions = field(default_factory=FeatureOptions)
    split: SplitOptions = field(default_factory=SplitOptions)
    split_file: Path | None = None
    """A split shared with other data sets of the same logs; default: one of this run."""
    chunk: int = 16
    """Log files in one part of the work, and in one batch of the backfill."""
    device: str = "cpu"
    """Where goals are predicted: cpu (by every worker), or cuda (by this process, part by part)."""
    npz: bool = False
    """Also write the guide's files (l2_samples.npz, ...) under npz/; unlike the data set they need memory to make."""

    def __post_init__(self) -> None:
        at_least(self, 1, "chunk")
        self.options()

    def options(self) -> SampleOptions:
        """How a log becomes samples."""
        return SampleOptions(self.l1, self.features)


@dataclass(frozen=True)
class SamplesCommand(EngineFlags, SamplesConfig):
    """`marlab market samples`: the samples, and where they are made (which changes none)."""

    COMMON: ClassVar = (
        "agent_name", "goal_backfill", "l2_model_path", "split_file", "device", "npz", "engine", "workers",
        "quiet", "l1.rules", "features.horizon", "features.offers", "split.val_ratio", "split.test_ratio",
        "split.split_by",
    )  # fmt: skip

    def run_config(self) -> SamplesConfig:
        """What decides the samples: the part that a resumed run must repeat."""
        return config_of(self, SamplesConfig)


OLD = OldFlags(
    renamed={
        "tournament_dir": ["--logs"],
        "num_workers": ["--workers"],
        "val_ratio": ["--split.val-ratio"],
        "test_ratio": ["--split.test-ratio"],
        "split_seed": ["--split.split-seed"],
        "l3_goal_backfill": ["--goal-backfill"],
        "l2_backfill_device": ["--device"],
        "backfill_world_chunk": ["--chunk"],
    },
    refused={"allow_csv": "logs are recorded worlds or tracker JSON; the simulator's tables lack what samples need."},
    ignored={
        "regen_split": "other samples are another run with a split of its own",
        "l2_backfill_batch_size": "goals are filled in in batches that fit",
        "stats_only": "the statistics are always made with the samples and kept in statistics.json",
        "stats_sample": "the statistics are of all samples",
        "tensorize_workers": "samples are stored as arrays at once; --workers says how many processes make them",
    },
)
main = RunCommand(
    "market samples",
    SamplesCommand,
    "marlab.market.samples.make:make_samples",
    presets=PRESETS,
    positional=("logs",),
    old=OLD,
)
