"""`marlab hunt eval AGENT ...`: the score card of agents: self-play, teams, the scenario suite, cross-play.

    runs/hunt/NAME/scorecard.md, scorecard.json, figures/   the card
    runs/hunt/NAME/measured/KEY.json                        one file per measurement, so that --resume goes on

Everybody plays the same streams of episodes from the same starts, beside random and scripted players, PPO players
trained for a team (`--references`) and, where it can be computed, the exact best response.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from marlab.hunt.game.config import game_config, game_names
from marlab.lab.command import RunCommand
from marlab.lab.engine.tasks import EngineFlags, config_of
from marlab.lab.errors import UserError

Part = Literal["self-play", "scenarios", "teams", "cross-play", "beliefs", "scored"]
DEFAULT_GAME = "msh_4x4"
HELD_OUT_SEED = 20_260_303
"""Starts and obstacle maps that no training uses."""


@dataclass(frozen=True)
class HuntEvalConfig:
    """Which agents to score, and how thoroughly."""

    KIND: ClassVar[str] = "hunt/eval"
    agent: str = ""
    """The agent: a rule such as NS, a run directory of trained agents, or shipped ones (hop_4x4, hop_8x8_b5, hop_far);
    RUN:3 is one training seed, NAME=RUN gives it a name."""
    agents: tuple[str, ...] = ()
    """More agents, compared with the first on the same starts."""
    game: str = ""
    """The game, by the name of its preset; by default the one that the first trained agent learnt in, or msh_4x4."""
    parts: tuple[Part, ...] = ("self-play", "scenarios", "teams", "cross-play", "beliefs")
    """What to play: single episodes of copies alone; the frozen suite; the teams of the few-shot protocol; each agent
    among copies of each; what planning agents believe of rule-based players; the scored family of strangers."""
    scored_seed: int | None = None
    """Seed of the scored strangers' parameters, chosen after tuning has ended; `--parts scored` needs it."""
    populations: tuple[str, ...] = ()
    """Trained players that are met by the scored agents and not scored themselves: NAME=RUN."""
    scenarios: tuple[str, ...] = ()
    """Only these of the suite; a team such as NS+2NH is a scenario too."""
    teams: tuple[str, ...] = ()
    """More teams, such as 3ppo for three copies of the agent that you named ppo."""
    references: tuple[str, ...] = ()
    """PPO players trained for a team: TEAM=RUN, such as 3NS=runs/hunt/ppo-3ns."""
    measured: tuple[Path, ...] = ()
    """Other evaluations (run directories) whose measurements are taken over instead of played again."""
    runs: int = 64
    """Repetitions of every cell; the focal seat moves on from one to the next."""
    steps: int = 2400
    """Game steps of a run, in which an agent may adapt."""
    window: int = 600
    """The score counts episodes that end in this many last steps."""
    episodes: int = 1000
    """Single episodes of self-play per training seed."""
    layouts: int = 500
    """Starts that are solved exactly for the best response; 0 leaves it out."""
    seed: int = HELD_OUT_SEED
    """Seed of starts, maps and players."""
    figures: bool = True
    """Draw pictures."""
    device: str = "auto"
    """Where to compute: auto, cpu, cuda or cuda:N."""

    def __post_init__(self) -> None:
        if self.game and self.game not in game_names():
            raise UserError(f"'{self.game}' is not a game, expected one of {', '.join(game_names())}.")
        for name, least in (("runs", 4), ("steps", 1), ("window", 1), ("episodes", 2), ("layouts", 0)):
            if getattr(self, name) < least:
                raise UserError(f"{name} is {getattr(self, name)}, expected {least} or more.")
        if self.game:
            self.check_window()
        if "scored" in self.parts and self.scored_seed is None:
            raise UserError("parts has scored, expected --scored-seed too: a number that no setting was chosen with.")
        if not self.parts:
            raise UserError("parts is empty, expected some of self-play, scenarios, teams, cross-play and beliefs.")

    def check_window(self) -> None:
        """Refuse a window without a whole episode; without a game of its own the config asks once the game is known."""
        longest = game_config(self.game or DEFAULT_GAME).final_time
        if not longest <= self.window <= self.steps:
            raise UserError(
                f"window is {self.window} of {self.steps} steps, expected from {longest} (an episode) to all of them."
            )

    @property
    def all_agents(self) -> tuple[str, ...]:
        named = tuple(dict.fromkeys([*([self.agent] if self.agent else []), *self.agents]))
        if not named:
            raise UserError("Name an agent: marlab hunt eval AGENT, a rule such as NS or a run directory.")
        return named


@dataclass(frozen=True)
class HuntEvalCommand(EngineFlags, HuntEvalConfig):
    """`marlab hunt eval`: the evaluation, and where cells of trained agents are played (which changes no result)."""

    def run_config(self) -> HuntEvalConfig:
        """What decides the results: the part that a resumed evaluation must repeat."""
        return config_of(self, HuntEvalConfig)


main = RunCommand("hunt eval", HuntEvalCommand, "marlab.hunt.evaluate.run:evaluate", positional=("agent", "agents..."))
