"""Settings of `marlab market distill`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from marlab.lab.checks import at_least, positive
from marlab.lab.errors import UserError
from marlab.lab.runs.judged import Judged
from marlab.market.online.settings import OnlineConfig

Pick = Literal["mean", "best"]


@dataclass(frozen=True)
class DistillConfig:
    """Teach one compact network what several teachers do, on the states that it visits itself."""

    KIND: ClassVar = "distill"
    COMMON: ClassVar = ("pick", "hidden", "generations", "worlds", "clones", "opponents", "seed", "device")

    sources: tuple[str, ...] = ()
    """Teachers: rule; runs or files of `marlab market online` or `market habits`; `habits` and `hrl`, habits and
    networks that come with the package; hrl:RUN with those of `marlab market train`."""
    pick: Pick = "mean"
    """mean: the student learns the mean of the teachers' choices; best: at each level those of the teacher that earns
    most there, measured in the vector market before."""
    hidden: tuple[int, ...] = (64, 64)
    """Units of the student's hidden layers."""
    bonus: float = 3.0
    """Logit of doing as the rule does, with which the student begins."""
    generations: int = 10
    """Batches of worlds in which the student plays and its teachers say what they would have done."""
    worlds: int = 32
    """Worlds that are played in lockstep."""
    play_days: int = 20
    """Days of a generation."""
    steps: int = 300
    """Steps of learning after each."""
    batch: int = 2048
    """Choices of a step."""
    lr: float = 1e-3
    """Adam's step size at the start; it falls to a tenth."""
    most: int = 200_000
    """Choices that are remembered; of more, the oldest are forgotten."""
    shapes: tuple[str, ...] = ("3x4",)
    """Levels x factories of a level of the worlds, in turn; `official`: 2 to 4 levels of 3 to 6 factories."""
    days: tuple[int, int] = (50, 60)
    """Fewest and most days of a world."""
    learners: int = 3
    """Selling factories of a world that the student plays."""
    clones: Path | None = None
    """File of cloned experts (`marlab market clone`) to play against."""
    opponents: tuple[str, ...] = ()
    """Who plays the other seats, as for `marlab market online`."""
    compare_worlds: int = 64
    """Worlds in which student and teachers are compared, seat by seat."""
    compare_days: int = 50
    """Days of such a world."""
    seed: int = 0
    device: str = "auto"
    """cpu, cuda, cuda:N or auto."""

    @property
    def judged_by(self) -> Judged:
        """What the student earns beside the mean of its teachers."""
        return Judged(("student minus teachers",), "distill/agreement", "higher")

    def __post_init__(self) -> None:
        at_least(self, 1, "generations", "worlds", "play_days", "steps", "batch", "most", "learners", "compare_worlds")
        at_least(self, 5, "compare_days")
        at_least(self, 0, "seed")
        positive(self, "lr")
        twice = [name for name in self.sources if self.sources.count(name) > 1]
        if twice:
            raise UserError(f"{twice[0]} is named twice among the sources.")
        self.online()

    def online(self) -> OnlineConfig:
        """The same worlds as an online training would play."""
        return OnlineConfig(
            algo="ippo", bonus=self.bonus, clones=self.clones, opponents=self.opponents, past_selves=0,
            shapes=self.shapes, days=self.days, worlds=self.worlds, learners=self.learners, hidden=self.hidden,
            steer_worlds=self.compare_worlds, steer_days=self.compare_days, seed=self.seed, device=self.device,
        )  # fmt: skip
