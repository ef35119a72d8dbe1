"""The settings of a training of planning agents."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from marlab.hunt.belief import TRAINING_DISCOUNT, BeliefConfig
from marlab.hunt.config import GameConfig
from marlab.hunt.games import DEFAULT_MAPS
from marlab.hunt.hop_guard import GuardConfig
from marlab.hunt.hop_learn import LearnConfig
from marlab.hunt.hop_models import MindConfig
from marlab.hunt.hop_planner import PlanConfig
from marlab.hunt.hop_variants import VariantName
from marlab.hunt.train_ppo import parse_seats, parse_seeds
from marlab.lab.errors import UserError

LEARNER = "HOP"


@dataclass(frozen=True)
class HopTrainConfig:
    """A training of agents that plan with beliefs about the others."""

    variant: VariantName = "hopplus-mcts"
    """What is planned with, whom the others are taken for, what is believed."""
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
        parse_seeds(self.seeds)
        parse_seats(self.agent_roles, self.game.players, LEARNER)

    @property
    def iterations(self) -> int:
        """Iterations until every seed has seen `total_steps` game steps."""
        return -(-self.total_steps // (self.num_envs * self.steps))

    @property
    def mind(self) -> MindConfig:
        """What is saved with the agents."""
        return MindConfig(
            self.variant, self.hidden, self.independent, self.own_moa, self.plan, self.belief, self.reward_scale,
            self.exact_step,
        )  # fmt: skip
