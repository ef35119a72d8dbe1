"""How much of a training is spent with guests: seats that are played by others than the learners."""

from __future__ import annotations

from dataclasses import dataclass

from marlab.lab.errors import UserError

SAME_GOAL = 0.5
"""Share of the parties whose guests are all after the same prey; in the others everybody draws its own."""


@dataclass(frozen=True)
class GuestConfig:
    """How much of a training is spent with guests."""

    share: float = 0.5
    """Share of the games that have guests, where all seats learn; 0 is self-play alone."""
    stay: float = 0.9
    """Probability that a party stays for another episode; planners forget a party that leaves."""

    def __post_init__(self) -> None:
        if not (0 <= self.share <= 1 and 0 <= self.stay < 1):
            raise UserError(f"guests share is {self.share:g} and stay {self.stay:g}, expected shares (stay below 1).")
