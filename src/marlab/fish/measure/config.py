"""What probes and evaluations play, and against what; free of torch, so that flags and help come at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from marlab.fish.sea.constants import EPISODE_STEPS
from marlab.lab.checks import at_least, at_most, positive
from marlab.lab.errors import UserError
from marlab.lab.runs.judged import Judged

HELD_OUT_SEED = 20_260_101
"""Seed of the arenas that no training and no probe uses unless it is asked to."""
SCRIPTED = (
    "forward", "random", "broadcast", "hold", "left", "brake", "flee", "south", "sidestep", "evade", "swerve", "dodge",
    "slip",
)  # fmt: skip
"""Every scripted policy; those up to sidestep from the weakest to the strongest in the standard sea."""
SeaName = Literal["trained", "v32", "pull", "pursuit", "intercept", "burst", "pack", "shoal"]
"""The sea a policy was trained in, or a frozen one of `sea/seas.py`."""
PROBES = "eval_multi_history.jsonl"
"""The file of a training with a line per probe."""
SPEED_CLASSES = {"below 1.2 m/s": (0.0, 1.2), "1.2 to 2.0 m/s": (1.2, 2.0), "2.0 m/s and more": (2.0, float("inf"))}
"""How fast the predator swam when it ate at the first step."""


MOST_ARENAS = 1_000_000
"""Episodes of one measurement; the seeds of all are drawn before the first is played."""


@dataclass(frozen=True)
class EvalConfig:
    """Play a checkpoint on held-out arenas, beside the scripted policies and the ceiling."""

    KIND: ClassVar[str] = "fish/eval"
    judged_by: ClassVar = Judged(("survival",))

    checkpoint: str = ""
    """A model_iter_N.pt, a run directory (its best model, or the last one), or a shipped policy (best)."""
    episodes: int = 200
    """Arenas."""
    fish: int | None = None
    """Fish per arena; none: 96, and in a sea where something else hunts as many as that sea has."""
    seed_base: int | None = None
    """Seed of the arenas; none: the held-out set that all evaluations share."""
    sea: SeaName = "trained"
    """The sea the policy was trained in, or a frozen one, to compare runs of different seas."""
    predator: str = ""
    """A predator of self-play (predator_N.pt) that hunts in place of the sea's."""
    baselines: bool = True
    """Play the scripted policies on the same arenas too."""
    ceiling: bool = True
    """Bound what any policy could reach on these arenas."""
    look_ahead: int = 0
    """In so many of the arenas also mend the policy's own episodes with the true dynamics: an upper reference where a
    predator hunts. Up to a minute an arena on a CPU."""
    film_fish: int = 0
    """Film one more episode with so many fish; 0: no film."""
    film_steps: int = EPISODE_STEPS
    """Longest film in steps."""
    film_fps: int = 20
    """Its frames per second."""
    replays: int = 1
    """Keep the paths of so many arenas for the replay page; 0: none."""
    against: str = "sidestep"
    """Who swims beside it in the replay, in the same arenas: a scripted policy or another checkpoint."""
    device: str = "auto"
    """Where to compute: auto, cpu, cuda or cuda:N."""

    def __post_init__(self) -> None:
        if not self.checkpoint:
            raise UserError("Name a checkpoint: marlab fish eval CHECKPOINT.")
        at_least(self, 1, "episodes", "film_steps", "film_fps", *(["fish"] if self.fish is not None else []))
        at_least(self, 0, "replays", "look_ahead")
        at_most(self, MOST_ARENAS, "episodes", "replays")


@dataclass(frozen=True)
class SuiteConfig:
    """Play a checkpoint in seas that differ in one thing each, beside the reactive scripts."""

    KIND: ClassVar[str] = "fish/suite"
    judged_by: ClassVar = Judged(("survival",))

    checkpoint: str = ""
    """A model_iter_N.pt, a run directory (its best model, or the last one), or a shipped policy (best)."""
    sea: SeaName = "trained"
    """The sea that is changed: the one the policy was trained in, or a frozen one."""
    arenas: int = 50
    """Arenas per cell; cells with many fish have fewer."""
    device: str = "auto"
    """Where to compute: auto, cpu, cuda or cuda:N."""

    def __post_init__(self) -> None:
        if not self.checkpoint:
            raise UserError("Name a checkpoint: marlab fish suite CHECKPOINT.")
        at_least(self, 1, "arenas")
        at_most(self, MOST_ARENAS, "arenas")


@dataclass(frozen=True)
class SchoolConfig:
    """How a shoal swims together, with a predator that a crowd confuses and with one that it does not."""

    KIND: ClassVar[str] = "fish/school"
    judged_by: ClassVar = Judged(("survival",))

    checkpoint: str = ""
    """A model_iter_N.pt, a run directory (its best model, or the last one), or a shipped policy (shoal)."""
    against: str = ""
    """Another one on the same arenas, best one that was trained without confusion; none: the script swerve."""
    sea: SeaName = "trained"
    """Where: in the sea that the policy was trained in, or in a frozen one."""
    confusion: float = 0.5
    """How much a crowd confuses: every further fish near the prey divides the turn rate by 1 + this for each."""
    arenas: int = 50
    """Arenas of everybody."""
    device: str = "auto"
    """Where to compute: auto, cpu, cuda or cuda:N."""

    def __post_init__(self) -> None:
        if not self.checkpoint:
            raise UserError("Name a checkpoint: marlab fish school CHECKPOINT.")
        at_least(self, 2, "arenas")
        at_most(self, MOST_ARENAS, "arenas")
        positive(self, "confusion")


@dataclass(frozen=True)
class MeasureConfig:
    """Probes while a shoal learns, the evaluation at the end, and their films."""

    multi_eval_interval: int = 16
    """Probe every so many iterations; 0 or less: never."""
    multi_eval_probe_episodes: int = 12
    """Episodes per probe, on new arenas each time."""
    multi_eval_fixed_episodes: int = 0
    """Further episodes per probe on arenas that stay the same for the whole run."""
    multi_eval_seed_base: int | None = None
    """Seed of the probes' arenas; none: the seed of the run."""
    eval_multi_fish: int = 25
    """Fish per arena in probes and in the final evaluation; 1 or less: no probes."""
    eval_multi_episodes: int = 48
    """Episodes of the final evaluation."""
    final_eval_seed_base: int | None = None
    """Seed of the final evaluation's arenas; none: the held-out set that all evaluations share."""
    best_checkpoint_max_step_one: int = 8
    """A best checkpoint has at most this many step-one deaths in its probe; 0 or less asks for nothing."""
    best_checkpoint_max_early_death: float = 0.1
    """A best checkpoint has at most this share of deaths before step 100; 0 or less asks for nothing."""
    skip_final_eval: bool = False
    """Leave final evaluation and its film to `marlab fish eval`."""
    tail_replay_count: int = 0
    """Film so many of a probe's worst episodes."""
    video_num_fish: int = 32
    """Fish in the final film; 0 or less: no film."""
    video_max_steps: int = 500
    """Longest film in steps."""
    video_fps: int = 20
    """Frames per second of the films."""

    def __post_init__(self) -> None:
        positive(self, "multi_eval_probe_episodes", "eval_multi_episodes", "video_max_steps", "video_fps")
        at_most(self, MOST_ARENAS, "multi_eval_probe_episodes", "multi_eval_fixed_episodes", "eval_multi_episodes")
        if self.video_max_steps > EPISODE_STEPS:
            raise UserError(f"video_max_steps is {self.video_max_steps}, but an episode ends after 500 steps.")

    def probe_due(self, iteration: int) -> bool:
        every = self.multi_eval_interval
        return every > 0 and self.eval_multi_fish > 1 and iteration % every == 0
