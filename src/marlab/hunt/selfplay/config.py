"""The settings of a training of planning agents."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import ClassVar, Literal

from marlab.hunt.game.config import GameConfig
from marlab.hunt.planner.config import MindConfig
from marlab.hunt.players.seats import GuestConfig, parse_seats, parse_seeds
from marlab.lab.checks import at_least, positive, share
from marlab.lab.errors import UserError
from marlab.lab.runs.judged import Judged

LEARNER = "HOP"
PHASES = ("P0", "P1", "P2", "P3", "P4", "P5", "P6", "P7")
AUTO = "auto"


@dataclass(frozen=True)
class LearnConfig:
    """How networks learn."""

    learning_rate: float = 1e-3
    """Adam step size at the start; it falls linearly."""
    final_learning_rate: float = 1e-4
    """Adam step size at the end."""
    updates: int = 60
    """Optimiser steps of prior and value per iteration."""
    batch_size: int = 1024
    """Steps in a minibatch of each network."""
    moa_updates: int = 20
    """Optimiser steps of the models of others per iteration."""
    moa_batch_size: int = 256
    """Steps in a minibatch for each pair of observer and other."""
    offline_ratio: float = 0.25
    """Share of offline steps in the batches of the models of others, where there are any."""
    lessons: float = 0.25
    """Share of offline steps in the batches of prior and value, where there are any: self-play seldom shows what
    waiting alone is worth, and values forget it."""
    moa_newest: int = 4000
    """Models of others learn from so many newest steps of every player: players change, and old steps are others'."""
    moa_follow: float = 0.98
    """Models of others used for planning keep this share of themselves at every optimiser step."""
    follow: float = 0.995
    """Weights used for planning keep this share of themselves at every optimiser step."""
    replay: int = 40_000
    """Steps kept of every player: about 20 iterations."""
    warm_updates: int = 1500
    """Optimiser steps on offline data before the first game, where there is any."""
    hindsight: bool = True
    """From players who caught nothing the prior learns what somebody with the other goal would have done; otherwise it
    learns nothing from them."""
    legacy_double_softmax: bool = False
    """Feed probabilities to the cross-entropy of the models of others, as the original did."""
    legacy_moa_buffer: Literal["none", "rows-after-exit", "successes-only"] = "none"
    """Faults of the original in what models of others learn from: players who left go on "staying", or only players who
    caught something are kept and only the first observer learns."""
    symmetries: bool = True
    """Turn and mirror batches at random: a turned game is the same game."""

    def __post_init__(self) -> None:
        at_least(self, 1, "updates", "batch_size", "moa_updates", "moa_batch_size", "moa_newest", "replay")
        at_least(self, 0, "warm_updates")
        positive(self, "learning_rate", "final_learning_rate")
        share(self, "offline_ratio", "lessons", "follow", "moa_follow")
        if 1 in (self.follow, self.moa_follow):
            raise UserError("follow or moa_follow is 1, expected less: planning would never see what was learnt.")


@dataclass(frozen=True)
class GuardConfig:
    """When to go back to better weights."""

    drop: float = 0.1
    """Go back to the best weights when the smoothed reward falls by this share of its best; 0 never does."""

    def __post_init__(self) -> None:
        if not 0 <= self.drop < 1:
            raise UserError(f"guard drop is {self.drop:g}, expected a share below 1.")


@dataclass(frozen=True)
class PipelineConfig:
    """Sizes of the phases around the training."""

    gates: Literal["stop", "warn"] = "stop"
    """A phase whose gate fails stops the command, or is only noted."""
    rows: int = 107_010
    """P1: offline rows to collect."""
    goal_epochs: int = 12
    """P2: epochs of the models of others."""
    vae_epochs: int | None = None
    """P2: how many of them, at most half and by default a third, train the autoencoder of situations first, where goals
    are codes."""
    goal_batch_size: int = 256
    """P2: rows of an optimiser step of the models of others."""
    belief_games: int = 128
    """P2: games in which beliefs with the models of others are measured; 0 leaves that out."""

    def __post_init__(self) -> None:
        at_least(self, 1, "rows", "goal_epochs", "goal_batch_size")
        if self.vae_epochs is not None:
            at_least(self, 1, "vae_epochs")


@dataclass(frozen=True)
class HopTrainConfig(MindConfig):
    """A training of agents that plan with beliefs about the others: a mind, and how it learns."""

    COMMON: ClassVar = (
        "variant", "agent_roles", "phases", "seeds", "total_steps", "num_envs", "load_data", "load_moa",
        "load_wm", "eval_episodes", "device", "game.height", "game.width", "game.players", "game.stags",
        "game.hares", "plan.trees", "plan.search.simulations", "learn.learning_rate", "learn.batch_size",
        "guests.share", "pipeline.gates",
    )  # fmt: skip
    KIND: ClassVar[str] = "hunt/hop"  # in run.json, so that other commands know what the run holds
    judged_by: ClassVar = Judged(("reward_learners_sampled",), "episode/reward")
    phases: str = AUTO
    """Phases to go through in order, such as P0..P7 or P1,P6; auto takes those that the variant needs to train."""
    pipeline: PipelineConfig = field(default_factory=PipelineConfig)
    """Sizes of the phases around the training."""
    game: GameConfig = field(default_factory=GameConfig)
    """The game; `--preset msh_8x8_b5` and its like set it."""
    agent_roles: str = ""
    """Who sits where, such as HOP,NS,NH,NH: HOP learns, the others are rule-based; empty lets all seats learn."""
    seeds: str = "0"
    """Seeds to train side by side, such as 0..4 or 1,5,7; all their games and networks are one batch."""
    total_steps: int = 600_000
    """Game steps per seed."""
    num_envs: int = 500
    """Games per seed."""
    steps: int = 6
    """Steps of every game per iteration."""
    load_data: Path | None = None
    """Run of `marlab hunt collect`: offline data for a warm start, and beside what models of others see online."""
    load_moa: Path | None = None
    """Run of `marlab hunt pretrain vae`: models of others (with codes for the hopplus variants) to plan with and to
    go on training."""
    load_wm: Path | None = None
    """Run of `marlab hunt pretrain world`, for the variants that imagine."""
    learn: LearnConfig = field(default_factory=LearnConfig)
    """How networks learn."""
    guests: GuestConfig = field(default_factory=GuestConfig)
    """Imagined players in some of the seats."""
    guard: GuardConfig = field(default_factory=GuardConfig)
    """Alarms and rollbacks."""
    rollout_share: float = 0.0
    """Weight of rule-based rollouts in leaf values at the start; it falls to 0 over the first third of training."""
    r2: bool = False
    """Rank final rewards to +1 and -1 for value labels."""
    eval_episodes: int = 1000
    """Episodes per seed of the final evaluation, on obstacle maps that training did not see."""
    device: str = "auto"
    """Where to compute: cpu, cuda, cuda:N, or auto for a GPU where there is one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, 1, "total_steps", "num_envs", "steps", "eval_episodes")
        share(self, "rollout_share")
        if self.game.rules != "hunt":
            raise UserError("Planning agents play the stag hunt; the snowdrift game has no goals stag and hare.")
        if self.rollout_share and self.parts.world_model and not self.exact_step:
            raise UserError("rollout_share needs the game itself to roll out in: use --exact-step, or leave it at 0.")
        parse_phases(self.phases)
        parse_seeds(self.seeds)
        if "P7" in self.chosen and self.game.players < 2:
            raise UserError("P7 seats agents among teams of others; this game has one player.")
        if "P5" in self.chosen:
            parse_seats(self.single_roles, self.game.players, LEARNER)
        parse_seats(self.agent_roles, self.game.players, LEARNER)

    @property
    def chosen(self) -> tuple[str, ...]:
        """The phases to go through."""
        named = parse_phases(self.phases)
        if named is not None:
            return named
        parts = self.parts
        needed = {
            "P1": self.load_data is None,
            "P2": parts.coplayers == "learned" and self.load_moa is None,
            "P3": parts.world_model and not self.exact_step and self.load_wm is None,
            "P6": True,
        }
        return tuple(phase for phase in PHASES if needed.get(phase))

    @property
    def single_roles(self) -> str:
        """Who sits where in P5: a learner, one NS player, and NH players in all other seats."""
        return ",".join([LEARNER, "NS", *["NH"] * self.game.players][: self.game.players])

    @property
    def iterations(self) -> int:
        """Iterations until every seed has seen `total_steps` game steps."""
        return -(-self.total_steps // (self.num_envs * self.steps))

    @property
    def mind(self) -> MindConfig:
        """What is saved with the agents."""
        return MindConfig(**{f.name: getattr(self, f.name) for f in fields(MindConfig)})


def parse_phases(text: str) -> tuple[str, ...] | None:
    """Phases in order from words such as "P0..P7" or "P1,P6"; None for "auto"."""
    if text.strip() == AUTO:
        return None
    phases: set[str] = set()
    for part in text.split(","):
        first, dots, last = (word.strip().upper() for word in part.partition(".."))
        ends = (first, last) if dots else (first, first)
        if not all(end in PHASES for end in ends) or ends[0] > ends[1]:
            raise UserError(f"phases is '{text}', expected auto, or phases such as P0..P7 or P1,P2,P6.")
        phases |= {phase for phase in PHASES if ends[0] <= phase <= ends[1]}
    return tuple(sorted(phases))
