"""Who sits where: the reference population, shapes of worlds, and a deck that deals seats so that all play equally."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from marlab.lab.errors import UserError

ENTRANTS = (
    "HorizonAwareAgent", "TakaLinkAgent", "SBD", "AS0", "Std", "PenguinAgent", "XenoSotaAgent",
    "UltraSuperMiracleSoraFinalAgentZ", "Rohn", "COW",
)  # fmt: skip
"""The entrants of the reference population."""
EXPERTS = (*ENTRANTS, "SyncRandomStdAgent", "RandomStdAgent")
"""The reference population."""
OURS = 'marlab.market.agent.agent:LitaAgentHRL(mode="heuristic")'
"""Our rule, as worlds name it."""
POSITIONS = ("first", "middle", "last")
"""Levels of the chain."""
OFFICIAL = "official"


def shape_of(text: str) -> tuple[int, int] | None:
    """Levels and factories of a level from words such as 3x4; None for worlds of official shape."""
    if text == OFFICIAL:
        return None
    levels, x, factories = text.partition("x")
    if not (x and levels.isdigit() and factories.isdigit() and 2 <= int(levels) <= 4 and 1 <= int(factories) <= 8):
        raise UserError(f"The shape '{text}' is not levels x factories such as 3x4 (2 to 4 levels), or official.")
    return int(levels), int(factories)


def processes_of(sizes: Iterable[int]) -> tuple[int, ...]:
    """The level of every factory, from factories by level."""
    return tuple(level for level, size in enumerate(sizes) for _ in range(size))


class Deck:
    """Names in rounds: everybody is dealt once before anybody twice."""

    def __init__(self, names: Sequence[str], draw: random.Random) -> None:
        self._names, self._draw = list(names), draw
        self._waiting: list[str] = []

    def deal(self, count: int) -> list[str]:
        """Some names in random order."""
        while len(self._waiting) < count:
            self._waiting += self._draw.sample(self._names, len(self._names))
        dealt, self._waiting = self._waiting[:count], self._waiting[count:]
        self._draw.shuffle(dealt)
        return dealt
