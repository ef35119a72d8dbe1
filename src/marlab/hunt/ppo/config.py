"""The settings of the PPO baseline."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Literal

from marlab.hunt.game.config import GameConfig
from marlab.hunt.players.characters import parse_character
from marlab.hunt.players.seats import GuestConfig, learning_seats, parse_seeds
from marlab.lab.checks import WIDEST, at_least, positive, share
from marlab.lab.errors import UserError
from marlab.lab.ppo.config import PPOConfig
from marlab.lab.runs.judged import Judged


@dataclass(frozen=True)
class NetworkConfig:
    """What a player's network looks like."""

    hidden: tuple[int, ...] = (128, 128)
    """Widths of its hidden layers, each with a ReLU."""
    paths: bool = False
    """It is also told the shortest ways to stag and hare, as planning agents can be."""

    def __post_init__(self) -> None:
        if not self.hidden or not 1 <= min(self.hidden) <= max(self.hidden) <= WIDEST:
            raise UserError(f"hidden is {self.hidden}, expected one or more widths from 1 to {WIDEST:,}.")


@dataclass(frozen=True)
class PPOTrainConfig:
    """The PPO baseline."""

    COMMON: ClassVar = (
        "variant", "agent_roles", "networks", "seeds", "total_steps", "num_envs", "eval_episodes", "device",
        "game.height", "game.width", "game.players", "game.stags", "game.hares", "ppo.learning_rate",
        "ppo.batch_size", "ppo.entropy_coef",
    )  # fmt: skip
    KIND: ClassVar[str] = "hunt/ppo"  # in run.json, so that other commands know what the run holds
    judged_by: ClassVar = Judged(("reward_learners_sampled",), "episode/reward")
    variant: Literal["ppo", "ps-ppo"] = "ppo"
    """ps-ppo is prosocial: every player in the game is taught the mean reward of all."""
    game: GameConfig = field(default_factory=GameConfig)
    """The game; `--preset msh_8x8_b5` and its like set it."""
    agent_roles: str = ""
    """Who sits where, such as PPO,NS,NH,NH: PPO learns, the others are rules, reciprocators or strangers; empty lets
    all seats learn."""
    stay: float = 1.0
    """Probability that the others of agent_roles stay for another episode; below 1 new ones come, who remember
    nothing."""
    guests: GuestConfig = field(default_factory=lambda: GuestConfig(share=0.0))
    """Stag hunters and hare catchers in some of the seats, where all seats learn."""
    load_data: Path | None = None
    """Run of `marlab hunt collect`: offline data for a warm start."""
    warm_updates: int = 1500
    """Optimiser steps on that data before the first game."""
    networks: Literal["shared", "independent"] = "shared"
    """One network for all learning seats (it sees itself first), or one for each."""
    seeds: str = "0"
    """Seeds to train side by side, such as 0..4 or 1,5,7; their games run in one batch."""
    total_steps: int = 1_000_000
    """Game steps per seed."""
    num_envs: int = 256
    """Games per seed."""
    network: NetworkConfig = field(default_factory=NetworkConfig)
    """What a player's network looks like."""
    ppo: PPOConfig = field(
        default_factory=lambda: PPOConfig(
            n_steps=64,
            batch_size=4096,
            learning_rate=1e-3,
            lr_schedule="linear",
            gamma=0.99,
            gae_lambda=0.95,
            entropy_coef=0.05,
        )
    )
    """How PPO learns. entropy_coef falls linearly to 0; batch_size is that of a network that learns from all
    seats: one that learns from fewer takes as much smaller minibatches, so all take as many gradient steps."""
    eval_episodes: int = 2000
    """Episodes per seed of the final evaluation, on obstacle maps that training did not see."""
    device: str = "auto"
    """Where to compute: cpu, cuda, cuda:N, or auto for a GPU where there is one."""

    def __post_init__(self) -> None:
        positive(self, "total_steps", "num_envs", "eval_episodes")
        parse_seeds(self.seeds)
        at_least(self, 1, "warm_updates")
        share(self, "stay")
        for name in learning_seats(self.agent_roles, self.game.players)[1]:
            if name is not None:
                parse_character(name)
        if self.guests.share and self.agent_roles.strip():
            raise UserError("guests.share is above 0 and agent_roles names who sits where; give one of the two.")

    @property
    def iterations(self) -> int:
        """Rollouts until every seed has seen `total_steps` game steps."""
        return -(-self.total_steps // (self.num_envs * self.ppo.n_steps))

    @property
    def played(self) -> GameConfig:
        """The game as it is taught: prosocial in the prosocial variant."""
        return replace(self.game, prosocial=True) if self.variant == "ps-ppo" else self.game
