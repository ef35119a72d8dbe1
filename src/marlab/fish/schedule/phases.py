"""The phases of a curriculum, and lists with one entry per phase. Iterations and phases count from 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from marlab.fish.schedule.syntax import whole, words
from marlab.lab.errors import UserError

T = TypeVar("T")

V32_PHASES = 7
"""The lists of v32 have one entry for each of its phases."""
ITERATIONS = 60
"""Length of a training that names neither a curriculum nor its iterations."""


@dataclass(frozen=True)
class Phase:
    """One entry of the curriculum: `num_fish` fish in iterations `first` to `last`, both included."""

    index: int
    num_fish: int
    first: int
    last: int

    @property
    def iterations(self) -> int:
        return self.last - self.first + 1


def parse_curriculum(text: str, total_iterations: int | None, num_fish: int) -> tuple[Phase, ...]:
    """`15:9,20:10` = 15 fish for 9 iterations, then 20 fish for 10; an empty text is one phase of `num_fish`."""
    pairs = [_fish_and_iterations(word) for word in words(text)] or [(num_fish, total_iterations or ITERATIONS)]
    total = sum(iterations for _, iterations in pairs)
    if total_iterations is not None and total != total_iterations:
        raise UserError(
            f"curriculum '{text}' covers {total} iterations, but total_iterations is {total_iterations}; "
            "leave total_iterations out or make both equal."
        )
    phases = []
    done = 0
    for index, (fish, iterations) in enumerate(pairs, start=1):
        phases.append(Phase(index, fish, done + 1, done + iterations))
        done += iterations
    return tuple(phases)


def _fish_and_iterations(word: str) -> tuple[int, int]:
    fish, colon, iterations = word.partition(":")
    if not colon:
        raise UserError(f"curriculum contains '{word}', expected fish:iterations such as 15:9.")
    pair = whole(fish, "curriculum"), whole(iterations, "curriculum")
    if min(pair) < 1:
        raise UserError(f"curriculum contains '{word}', expected a positive fish count and positive iterations.")
    return pair


def phase_at(phases: Sequence[Phase], iteration: int) -> Phase:
    """The phase of an iteration; iterations outside the curriculum belong to its first or last phase."""
    for phase in phases:
        if iteration <= phase.last:
            return phase
    return phases[-1]


def stretched(v32: Sequence[T], phases: int) -> list[T]:
    """A list of v32 for another number of phases: its first entry first, its last entry last, evenly between."""
    return [v32[round(i * (len(v32) - 1) / (phases - 1)) if phases > 1 else 0] for i in range(phases)]
