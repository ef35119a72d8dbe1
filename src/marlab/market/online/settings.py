"""Settings of `marlab market online`; free of torch, so that help comes at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from marlab.lab.checks import at_least, at_most, positive
from marlab.lab.errors import UserError
from marlab.lab.runs.judged import Judged
from marlab.market.simulator.seating import EXPERTS, shape_of

Algo = Literal["ppo", "ippo", "mappo"]
Ground = Literal["vector", "real"]
BUILTINS = ("rule", "RandomStdAgent", "SyncRandomStdAgent", "GreedyStdAgent")
"""Opponents that need no file."""
MOST_WORLDS, MOST_DAYS, MOST_UNITS = 100_000, 10_000, 16_384
"""Bounds of what can be meant."""
RULE, WEAK = "rule", "weak"
"""Words for `start`."""
START_FILE = "around_start.npz"
"""The network that learning began with, among the checkpoints of a run."""


@dataclass(frozen=True)
class OnlineConfig:
    """Learn to sell in the vector market, starting from rule W."""

    COMMON: ClassVar = (
        "algo", "start", "generations", "worlds", "clones", "opponents", "ground",
        "refits", "real_worlds", "learning_rate", "bonus", "share", "seed", "device", "engine", "workers",
    )  # fmt: skip
    algo: Algo = "mappo"
    """ippo: every thread is an agent, all share one network; mappo: their critic also sees who the others are; ppo:
    only the order in which threads are served is learnt (L4), what is done in them stays the rule's."""
    start: str = RULE
    """Where learning begins: rule (its greedy play is rule W), weak (it never does as the rule does), or the network of
    an earlier run."""
    bonus: float = 3.0
    """Logit of doing as the rule does: the larger, the less is tried out."""
    clones: Path | None = None
    """File of cloned experts (`marlab market clone`) to play against."""
    opponents: tuple[str, ...] = ()
    """Who plays the other seats: rule, built-in agents, names of clones. Default: all clones, or the built-ins."""
    past_selves: int = 1
    """Frozen earlier versions of the learner among the opponents."""
    shapes: tuple[str, ...] = ("3x4",)
    """Levels x factories of a level of the worlds, in turn; `official`: 2 to 4 levels of 3 to 6 factories."""
    days: tuple[int, int] = (50, 60)
    """Fewest and most days of a world."""
    worlds: int = 64
    """Worlds that are played in lockstep."""
    learners: int = 3
    """Selling factories of a world that the learner plays."""
    generations: int = 20
    """Batches of worlds to learn from; training is saved between two of them."""
    generation_days: int = 60
    """Days that a generation goes on; worlds that end are replaced by new ones."""
    rollout_days: int = 2
    """Days between two updates; an update learns from the days before the latest ones, which show what they led to."""
    hidden: tuple[int, ...] = (128, 128)
    """Units of the hidden layers."""
    learning_rate: float = 3e-4
    """Adam's step size at the start; it falls linearly to a tenth."""
    epochs: int = 3
    """Passes over the choices of a rollout."""
    batch_size: int = 8192
    """Choices per gradient step."""
    clip_range: float = 0.2
    """How far a probability ratio may move before it stops paying."""
    entropy_coef: float = 0.001
    """Weight of the entropy bonus."""
    target_kl: float = 0.02
    """An update ends when the mean divergence from the policy that played passes 1.5 times this."""
    leash: float = 0.0
    """Weight of the divergence from where learning began."""
    gamma: float = 0.95
    """Discount per day."""
    gae_lambda: float = 0.9
    """Mixing of short and long returns, per choice of a thread."""
    share: float = 0.5
    """How much of what its factory's other threads and its evenings bring counts for a thread, beside its own deals."""
    may_leave: bool = False
    """Leaving a negotiation is a choice also while there is room."""
    outright: bool = False
    """Lot, price and day are always the network's own: there is no doing as the rule does but in the operator."""
    steer_every: int = 2
    """Generations between two comparisons with the rule, seat by seat on fixed configs, which decide what is kept and
    what is taken back; 0: none, the newest version is the result."""
    steer_worlds: int = 64
    """Worlds of such a comparison."""
    steer_days: int = 50
    """Days of such a world."""
    patience: int = 0
    """Stop after this many comparisons without a better one; 0 never does."""
    ground: Ground = "vector"
    """vector: the vector market, with clones; real: every generation is `real_worlds` worlds of the simulator."""
    refits: int = 0
    """How often, spread over the training, the learner plays real worlds, learns from them, and the clones are fitted
    again to everything that is recorded."""
    real_worlds: int = 24
    """Worlds of the simulator that are played each time."""
    experts: tuple[str, ...] = EXPERTS
    """Who plays in real worlds beside the learner, in rotation."""
    recorded: Path | None = None
    """Folder of worlds that were recorded before: clones are fitted to them too."""
    refit_units: int = 40
    """Units of fitting clones each time."""
    world_timeout: float = 1800.0
    """Seconds after which a real world is ended and counted as failed."""
    seed: int = 0
    device: str = "auto"
    """cpu, cuda, cuda:N or auto."""

    def __post_init__(self) -> None:
        at_least(self, 1, "worlds", "learners", "generations", "rollout_days", "epochs", "batch_size", "steer_worlds")
        at_least(self, 0, "past_selves", "steer_every", "patience", "seed")
        positive(self, "learning_rate", "clip_range", "target_kl", "world_timeout")
        at_least(self, 0, "refits")
        at_least(self, 1, "real_worlds", "refit_units")
        at_most(self, MOST_WORLDS, "worlds", "steer_worlds", "real_worlds")
        at_most(self, MOST_DAYS, "generation_days", "rollout_days", "steer_days")
        at_most(self, 100, "past_selves", "learners", "refits")
        if not all(1 <= units <= MOST_UNITS for units in self.hidden) or len(self.hidden) > 10:
            raise UserError(f"hidden is {self.hidden}, expected at most 10 layers of 1 to {MOST_UNITS:,} units.")
        if self.refits and self.clones is None:
            raise UserError("refits fit the clones again: give --clones FILE, the ones to begin with.")
        if self.refits >= self.generations:
            raise UserError(f"{self.refits} refits need more than {self.generations} generations.")
        if self.algo == "ppo" and (self.refits or self.ground == "real"):
            raise UserError(
                "Real worlds teach what is done in threads: with --algo ppo leave --ground and --refits out."
            )
        if self.outright and self.start == RULE:
            raise UserError("With --outright no network plays as the rule: give --start weak, or a run.")
        if self.algo == "ppo" and self.outright:
            raise UserError("--algo ppo learns the order of threads alone: leave --outright out.")
        if self.refits and self.ground == "real":
            raise UserError("With --ground real nothing is learnt from clones: leave refits out.")
        if not self.experts:
            raise UserError("experts is empty, expected the names of agents that play beside the learner.")
        if self.generation_days < 2 * self.rollout_days:
            raise UserError(
                "generation_days must be at least twice rollout_days: the latest days only show what the "
                "ones before them led to."
            )
        if not 5 <= self.days[0] <= self.days[1] <= MOST_DAYS:
            raise UserError(
                f"days is {self.days}, expected two numbers from 5 to {MOST_DAYS:,}, the smaller one first."
            )
        if self.steer_days < 5:
            raise UserError(f"steer_days is {self.steer_days}, expected at least 5.")
        for name in ("gamma", "gae_lambda", "share"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"{name} is {getattr(self, name)}, expected a share from 0 to 1.")
        for shape in self.shapes:
            shape_of(shape)
        if self.clones is None:
            for name in self.opponents:
                if name not in BUILTINS:
                    raise UserError(
                        f"The opponent {name} is none of {', '.join(BUILTINS)}; clones need --clones FILE (`marlab "
                        "market clone` makes it)."
                    )

    @property
    def judged_by(self) -> Judged:
        """What it earns more than the rule, in the vector market."""
        return Judged(("learner minus rule",), "steer/gain", "higher")
