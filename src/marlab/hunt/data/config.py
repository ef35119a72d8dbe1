"""The settings of `marlab hunt collect`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from marlab.hunt.game.config import GameConfig
from marlab.lab.checks import at_least, share
from marlab.lab.errors import UserError


@dataclass(frozen=True)
class HuntCollectConfig:
    """What to collect."""

    COMMON: ClassVar = (
        "rows", "rand_share", "seed", "game.height", "game.width", "game.players",
        "game.stags", "game.hares",
    )  # fmt: skip
    KIND: ClassVar[str] = "hunt/data"  # in run.json, so that other commands know what the run holds
    game: GameConfig = field(default_factory=GameConfig)
    """The game; `--preset msh_8x8_b5` and its like set it."""
    rows: int = 107_010
    """At least this many rows; the last episode is kept whole."""
    rand_share: float = 0.0
    """Probability that a player is RAND; otherwise NS or NH with equal chance."""
    seed: int = 0
    """Seed of everything random."""

    def __post_init__(self) -> None:
        at_least(self, 1, "rows")
        share(self, "rand_share")
        if self.game.rules != "hunt":
            raise UserError("hunt collect records the stag hunt; the snowdrift game has no stag and hare players.")
