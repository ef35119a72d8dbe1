"""The settings of `marlab sweep`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from marlab.lab.engine.tasks import EngineFlags, config_of
from marlab.lab.errors import UserError
from marlab.lab.sweep.space import Axis, check_axes, parse_axis, parse_seeds

KIND = "lab/sweep"


@dataclass(frozen=True)
class SweepConfig:
    """Try out settings of a training: every combination, or random draws, with several seeds each; ends with the table
    and the verdict of `marlab compare`."""

    KIND: ClassVar[str] = KIND
    TITLE: ClassVar = "the sweep"
    COMMON: ClassVar = (
        "set", "seeds", "draws", "start_from", "rungs", "halving", "keep", "metric", "engine", "workers", "quiet",
    )  # fmt: skip

    words: tuple[str, ...] = ()
    """The training: WORLD COMMAND and its plain words, for example fish train, or market train DATA."""
    set: tuple[str, ...] = ()
    """Settings to try, given once or more: NAME=VALUE,VALUE, whole numbers NAME=2..5, with --draws also NAME=1e-5..1e-3
    or NAME=1e-5..1e-3:log; one value alone holds for all. Values with commas: NAME=["1,2", "3"]."""
    seeds: str | None = None
    """Seeds to train every setting with, such as 0..4 or 1,5,7; by default only the training's own."""
    start_from: str | None = None
    """The training's preset to start from; --preset means the same."""
    draws: int | None = None
    """Draw so many settings at random instead of trying every combination."""
    draw_seed: int = 0
    """Seed of the draws."""
    default: bool = False
    """Also train the settings as they are without any --set of several values, and compare with them."""
    rungs: tuple[int, ...] = ()
    """Successive halving: train all settings for so many iterations (epochs), go on with the best, and so on."""
    halving: str | None = None
    """The metric that decides at a rung, by its name or the end of it; by default what the training is judged by."""
    keep: float = 0.5
    """Share of the settings that goes on after a rung; two at least."""
    metric: str | None = None
    """The result or metric that the finished trainings are compared by; by default what they are judged by."""
    better: Literal["higher", "lower"] | None = None
    """Which way is better, where the training does not say."""

    def __post_init__(self) -> None:
        if not self.words:
            raise UserError("Say what to train: `marlab sweep WORLD COMMAND --set NAME=A,B`.")
        check_axes(self.axes, self.draws)
        if self.seeds is not None:
            parse_seeds(self.seeds)
        if self.draws is not None and not 1 <= self.draws <= 10_000:
            raise UserError(f"draws is {self.draws}, expected 1 to 10,000.")
        if any(b <= a for a, b in zip((0, *self.rungs), self.rungs)):
            raise UserError(f"rungs are {' '.join(map(str, self.rungs))}, expected rising numbers of 1 or more.")
        if self.halving is not None and not self.rungs:
            raise UserError("--halving needs --rungs: after how many iterations the settings are compared.")
        if not 0 < self.keep < 1:
            raise UserError(f"keep is {self.keep:g}, expected a share between 0 and 1.")

    @property
    def axes(self) -> list[Axis]:
        return [parse_axis(text) for text in self.set]


@dataclass(frozen=True)
class SweepCommand(EngineFlags, SweepConfig):
    """Try out settings of a training: every combination, or random draws, with several seeds each; ends with the table
    and the verdict of `marlab compare`. Killed or stopped, it goes on with --resume."""

    def run_config(self) -> SweepConfig:
        """What decides the results: the part that a resumed sweep must repeat."""
        return config_of(self, SweepConfig)
