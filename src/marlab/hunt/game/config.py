"""What defines a game: its grid, its prey, its rewards and its end.

Letters of this package: B games, n players, m prey, C = height x width cells, A actions, M obstacle maps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from marlab.lab.config import from_dict, load_preset
from marlab.lab.errors import UserError

GAMES = Path(__file__).parents[1] / "presets" / "game"
"""Presets of games."""
DEFAULT_MAPS = 1024
"""Obstacle maps a game draws unless told otherwise; every start picks one of them."""
REWARD_SCALE = 0.2
"""Rewards times this are what networks and trees see: a stag shared by two is worth 1."""
BLOCK_CELLS = 4
"""The largest obstacle shape has this many cells."""


@dataclass(frozen=True)
class GameConfig:
    """A game. The defaults are the preset msh_4x4."""

    rules: Literal["hunt", "snowdrift"] = "hunt"
    """The stag hunt, or the snowdrift game on the same grid."""
    height: int = 4
    """Rows of the grid."""
    width: int = 4
    """Columns of the grid."""
    players: int = 4
    """Players at the start."""
    stags: int = 1
    """Stag hunt: stags at the start."""
    hares: int = 4
    """Stag hunt: hares at the start."""
    drifts: int = 6
    """Snowdrift: drifts at the start."""
    max_block_comp: int = 0
    """Obstacle components drawn at a reset; one that would overlap another is left out."""
    layout: Literal["anywhere", "far", "loose"] = "anywhere"
    """Where everything begins. far: players in the middle column, the stag in the last one with half of the hares
    beside it, the other hares in the first column: goals show late, and a way must be chosen early. loose: the
    same, but in half of the games players begin anywhere, so that learners also see ways that nobody goes at first."""
    final_time: int = 35
    """Steps after which an episode ends for everyone (a termination, because players see the time)."""
    stag_reward: float = 10.0
    """Stag hunt: what a stag pays, shared by those who hunt it together."""
    hare_reward: float = 1.0
    """Stag hunt: what a hare pays, shared by those who hunt it together."""
    drift_reward: float = 6.0
    """Snowdrift: what a removed drift pays to every player."""
    drift_cost: float = 4.0
    """Snowdrift: what removing a drift costs, shared by those who remove it together."""
    time_reward: float = 0.0
    """Added every step to the players who stay in the game."""
    player_strength: tuple[float, ...] = ()
    """Stag hunt: weights of the players in the sharing of a stag; empty means equal."""
    prosocial: bool = False
    """Pay every player who acted the mean reward of all players of that step."""
    dynamic_final_time: bool = False
    """Also end an episode a few steps after the first capture."""
    final_time_after_first_hunt: int = 5
    """How many steps follow the first capture then."""
    legacy_global_prev_actions: bool = False
    """Show the last actions in global order and keep those of players who left, as the original did."""

    def __post_init__(self) -> None:
        self._check_sizes()
        if self.player_strength and len(self.player_strength) != self.players:
            raise UserError(
                f"player_strength has {len(self.player_strength)} values for {self.players} players; "
                "give one per player, or none."
            )
        if any(strength < 0 for strength in self.player_strength):
            raise UserError(f"player_strength is {self.player_strength}, expected values of 0 or more.")
        narrow = self.width < 5 or self.height < max(self.players, self.hares // 2)
        if self.layout != "anywhere" and (self.rules != "hunt" or self.max_block_comp or narrow):
            raise UserError(
                f"layout is {self.layout} on a {self.height}x{self.width} grid, expected a stag hunt without "
                "obstacles, 5 or more columns, and as many rows as players."
            )
        worst = self.cells - BLOCK_CELLS * self.max_block_comp
        if worst < self.prey + 1:
            raise UserError(
                f"A {self.height}x{self.width} grid with {self.max_block_comp} obstacle components (max_block_comp) "
                f"has no room for {self.prey} prey and a player: {self.max_block_comp} components may cover "
                f"{BLOCK_CELLS * self.max_block_comp} of {self.cells} cells; at most "
                f"{max(0, (self.cells - self.prey - 1) // BLOCK_CELLS)} components fit."
            )

    def _check_sizes(self) -> None:
        for name, least in (("height", 2), ("width", 2), ("players", 1), ("stags", 0), ("hares", 0), ("drifts", 1)):
            if getattr(self, name) < least:
                raise UserError(f"{name} is {getattr(self, name)}, expected {least} or more.")
        for name, least in (("max_block_comp", 0), ("final_time", 1), ("final_time_after_first_hunt", 0)):
            if getattr(self, name) < least:
                raise UserError(f"{name} is {getattr(self, name)}, expected {least} or more.")
        if self.cells > 255:
            raise UserError(f"The grid {self.height}x{self.width} has {self.cells} cells, expected at most 255.")
        if self.rules == "hunt" and self.stags + self.hares == 0:
            raise UserError("A stag hunt needs prey: stags and hares are both 0.")

    @property
    def cells(self) -> int:
        return self.height * self.width

    @property
    def prey(self) -> int:
        """Prey (or drifts) at the start."""
        return sum(self.prey_kinds)

    @property
    def prey_kinds(self) -> tuple[int, ...]:
        """How many prey of each kind: stags and hares, or drifts; the action 5 + kind hunts it."""
        return (self.drifts,) if self.rules == "snowdrift" else (self.stags, self.hares)

    @property
    def actions(self) -> int:
        """Number of actions: four moves, stay, and one hunt per kind of prey."""
        return 5 + len(self.prey_kinds)

    @property
    def channels(self) -> int:
        """Planes of an observation: players, obstacles, one per kind of prey."""
        return self.players + 1 + len(self.prey_kinds)


def game_names() -> list[str]:
    """Names of the shipped games."""
    return sorted(path.stem for path in GAMES.glob("*.toml"))


def game_config(name: str, **changes: Any) -> GameConfig:
    """A shipped game by name (or a TOML file with a [game] table), with some fields changed."""
    preset = load_preset(name, GAMES)
    config = from_dict(GameConfig, preset.values.get("game", {}), f"preset {name}")
    return replace(config, **changes) if changes else config
