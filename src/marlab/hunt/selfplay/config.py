"""The settings of a training of planning agents."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from marlab.hunt.game.build import DEFAULT_MAPS
from marlab.hunt.game.config import GameConfig
from marlab.hunt.others.belief import TRAINING_DISCOUNT, BeliefConfig
from marlab.hunt.planner.mind import MindConfig
from marlab.hunt.planner.planner import PlanConfig
from marlab.hunt.planner.variants import VariantName
from marlab.hunt.ppo.train import parse_seats, parse_seeds
from marlab.hunt.selfplay.guard import GuardConfig
from marlab.hunt.selfplay.guests import GuestConfig
from marlab.hunt.selfplay.learn import LearnConfig
from marlab.lab.errors import UserError

LEARNER = "HOP"
PHASES = ("P0", "P1", "P2", "P3", "P4", "P5", "P6", "P7")
AUTO = "auto"


@dataclass(frozen=True)
class PipelineConfig:
    """Sizes of the phases around the training."""

    gates: Literal["stop", "warn"] = "stop"
    """A phase whose gate fails stops the command, or is only noted."""
    check_episodes: int = 4096
    """P0: episodes per population."""
    rows: int = 107_010
    """P1: offline rows to collect."""
    goal_epochs: int = 10
    """P2: epochs of the goal codes, for the variants that believe in codes."""
    world_rows: int = 50_000
    """P3: transitions of the world model's training."""
    world_epochs: int = 20
    """P3: epochs of the world model."""
    ppo_steps: int = 1_000_000
    """P4: game steps per seed of the PPO baseline."""
    single_steps: int = 60_000
    """P5: game steps per seed of one learner among rule-based players."""
    single_roles: str = "HOP,NS,NH,NH"
    """P5: who sits where."""
    adapt_games: int = 64
    """P7: games per team of the few-shot report."""
    adapt_steps: int = 2400
    """P7: game steps of every one of them; the last quarter is scored."""

    def __post_init__(self) -> None:
        for name in ("check_episodes", "rows", "goal_epochs", "world_rows", "world_epochs", "ppo_steps",
                     "single_steps", "adapt_games", "adapt_steps"):  # fmt: skip
            if getattr(self, name) < 1:
                raise UserError(f"pipeline {name} is {getattr(self, name)}, expected 1 or more.")


@dataclass(frozen=True)
class HopTrainConfig:
    """A training of agents that plan with beliefs about the others."""

    KIND: ClassVar[str] = "hunt/hop"  # in run.json, so that other commands know what the run holds
    variant: VariantName = "hopplus-mcts"
    """What is planned with, whom the others are taken for, what is believed."""
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
    maps: int = DEFAULT_MAPS
    """Obstacle maps that training draws its starts from, in games with obstacles."""
    load_data: Path | None = None
    """Run of `marlab hunt collect`: offline data for a warm start, and beside what models of others see online."""
    load_vae: Path | None = None
    """Run of `marlab hunt pretrain vae` whose codes are the goals of the hopplus variants."""
    load_wm: Path | None = None
    """Run of `marlab hunt pretrain world`, for the variants that imagine."""
    hidden: int = 128
    """Width of the networks' two hidden layers."""
    paths: bool = False
    """Networks are also told the shortest ways to stag and hare; otherwise they read them off the map, or do not."""
    independent: bool = False
    """A network of its own for every seat; otherwise the seats of a seed share one (each sees itself first)."""
    own_moa: bool = True
    """Models of others of its own for every seat; otherwise the seats of a seed share theirs."""
    plan: PlanConfig = field(default_factory=PlanConfig)
    """How a player plans."""
    belief: BeliefConfig = field(default_factory=lambda: BeliefConfig(discount=TRAINING_DISCOUNT))
    """How beliefs move; intra and inter are the variant's."""
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
    exact_step: bool = False
    """Use the game itself where the variant has a world model."""
    reward_scale: float = 0.2
    """Rewards times this are what networks and trees see: a stag shared by two is worth 1."""
    eval_episodes: int = 1000
    """Episodes per seed of the final evaluation, on obstacle maps that training did not see."""
    save_every: int = 50
    """Iterations between checkpoints."""
    record: bool = False
    """On a GPU, record the search as one CUDA graph per size of batch: fewer launches, more memory."""
    device: str = "cpu"
    """cpu, cuda, cuda:N or auto."""

    def __post_init__(self) -> None:
        for name in ("total_steps", "num_envs", "steps", "maps", "eval_episodes", "save_every"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} is {getattr(self, name)}, expected 1 or more.")
        if not 0 <= self.rollout_share <= 1:
            raise UserError(f"rollout_share is {self.rollout_share:g}, expected a share from 0 to 1.")
        if self.game.rules != "hunt":
            raise UserError("Planning agents play the stag hunt; the snowdrift game has no goals stag and hare.")
        if self.rollout_share and self.mind.parts.world_model and not self.exact_step:
            raise UserError("rollout_share needs the game itself to roll out in: use --exact-step, or leave it at 0.")
        parse_phases(self.phases)
        parse_seeds(self.seeds)
        if "P7" in self.chosen and self.game.players != 4:
            raise UserError(f"P7 seats agents among teams of three; this game has {self.game.players} players.")
        if "P5" in self.chosen:
            parse_seats(self.pipeline.single_roles, self.game.players, LEARNER)
        parse_seats(self.agent_roles, self.game.players, LEARNER)

    @property
    def chosen(self) -> tuple[str, ...]:
        """The phases to go through."""
        named = parse_phases(self.phases)
        if named is not None:
            return named
        parts = self.mind.parts
        needed = {
            "P1": self.load_data is None,
            "P2": parts.goals == "latent" and self.load_vae is None,
            "P3": parts.world_model and not self.exact_step and self.load_wm is None,
            "P6": True,
        }
        return tuple(phase for phase in PHASES if needed.get(phase))

    @property
    def iterations(self) -> int:
        """Iterations until every seed has seen `total_steps` game steps."""
        return -(-self.total_steps // (self.num_envs * self.steps))

    @property
    def mind(self) -> MindConfig:
        """What is saved with the agents."""
        return MindConfig(
            self.variant, self.hidden, self.paths, self.independent, self.own_moa, self.plan, self.belief,
            self.reward_scale, self.exact_step,
        )  # fmt: skip


def parse_phases(text: str) -> tuple[str, ...] | None:
    """Phases in order from words such as "P0..P7" or "P1,P6"; None for "auto"."""
    if text.strip() == AUTO:
        return None
    found: set[str] = set()
    for part in text.split(","):
        first, dots, last = (word.strip().upper() for word in part.partition(".."))
        ends = (first, last) if dots else (first, first)
        if not all(end in PHASES for end in ends) or ends[0] > ends[1]:
            raise UserError(f"phases is '{text}', expected auto, or phases such as P0..P7 or P1,P2,P6.")
        found |= {phase for phase in PHASES if ends[0] <= phase <= ends[1]}
    return tuple(sorted(found))
