"""What changes from iteration to iteration: phases, entropy, learning rate, and all schedules behind one call.

Iterations and phases count from 1. Everything here is plain arithmetic on the config; only `EscapeBoost` and
`Schedules` carry state, and both can be saved and restored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from marlab.fish.schedule.boost import EscapeBoost
from marlab.fish.schedule.penalty import PenaltySchedule
from marlab.fish.schedule.phases import Phase, phase_at
from marlab.fish.schedule.syntax import number, whole, words
from marlab.lab.errors import UserError
from marlab.lab.ppo.config import LrSchedule, lr_scale


@dataclass(frozen=True)
class EntropyWindow:
    first: int
    last: float  # a whole number, or infinity for an open window
    value: float


def parse_entropy_windows(text: str) -> tuple[EntropyWindow, ...]:
    """`16-24:0.03,25+:0.02,40:0.05` = a closed window, an open one and a single iteration, ends included."""
    return tuple(_entropy_window(word) for word in words(text))


def _entropy_window(word: str) -> EntropyWindow:
    flag = "entropy_coef_schedule"
    span, colon, value = word.partition(":")
    if not colon:
        raise UserError(f"{flag} contains '{word}', expected start-end:value, start+:value or n:value.")
    span = span.strip()
    if span.endswith("+"):
        first: int = whole(span[:-1], flag)
        last: float = math.inf
    else:
        left, _, right = span.partition("-")
        first = whole(left, flag)
        last = whole(right, flag) if right else first
    window = EntropyWindow(first, last, number(value.strip(), flag))
    if window.first < 1 or window.last < window.first or window.value < 0:
        raise UserError(f"{flag} contains '{word}', expected a start from 1, an end not before it and a value from 0.")
    return window


def entropy_coef(iteration: int, base: float, windows: Sequence[EntropyWindow]) -> float:
    """The value of the latest-starting window that holds the iteration, else the base."""
    value, start = base, 0
    for window in windows:
        if window.first <= iteration <= window.last and window.first >= start:
            value, start = window.value, window.first
    return value


def lr_elapsed(iteration: int, phases: Sequence[Phase], progress: Literal["phase", "run"]) -> float:
    """The elapsed fraction that the update of an iteration sees.

    "run" counts over the whole run, from 0 at iteration 1, so the last update still learns something.
    "phase" is the original's saw-tooth: at each phase the end of the schedule moves to that phase's last
    iteration while the count goes on, so iteration i sees i / last and the last update of each phase has rate 0.
    It reproduces the recorded rates of the v32 run (8.0e-5 at iteration 10, 6.4e-6 at iteration 53).
    """
    if progress == "phase":
        return iteration / phase_at(phases, iteration).last
    return (iteration - 1) / phases[-1].last


# --- all of it at once --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class IterationSettings:
    """What one iteration runs with; made before its first step."""

    iteration: int
    phase: Phase
    new_phase: bool
    density_penalty: float
    entropy_coef: float
    learning_rate: float
    escape_boost: float


class Schedules:
    """All schedules of a run behind one call per iteration."""

    def __init__(
        self,
        phases: tuple[Phase, ...],
        penalty: PenaltySchedule,
        boost: EscapeBoost,
        *,
        entropy_base: float,
        entropy_windows: tuple[EntropyWindow, ...],
        learning_rate: float,
        lr_schedule: LrSchedule,
        lr_progress: Literal["phase", "run"],
        phase_limit: int | None,
    ) -> None:
        self.phases, self.penalty, self.boost = phases, penalty, boost
        self.entropy_base, self.entropy_windows = entropy_base, entropy_windows
        self.learning_rate, self.lr_schedule, self.lr_progress = learning_rate, lr_schedule, lr_progress
        self.phase_limit = phase_limit  # 1-based; None when there is no gate

    def begin_iteration(self, iteration: int) -> IterationSettings:
        """Phase, penalty, entropy, rate and boost of an iteration, in the order of the original."""
        phase = phase_at(self.phases, iteration)
        penalty = self.penalty.value(iteration, self.phase_limit)
        elapsed = lr_elapsed(iteration, self.phases, self.lr_progress)
        return IterationSettings(
            iteration=iteration,
            phase=phase,
            new_phase=iteration == phase.first,
            density_penalty=penalty,
            entropy_coef=entropy_coef(iteration, self.entropy_base, self.entropy_windows),
            learning_rate=self.learning_rate * lr_scale(self.lr_schedule, elapsed),
            escape_boost=self.boost.begin_iteration(phase.index, penalty),
        )

    def follow_gate(self, stage: int, phase_limit: int) -> None:
        """Tell the penalty its last allowed phase (1-based) and the boost the gate's stage (0-based)."""
        self.phase_limit, self.boost.gate_stage = phase_limit, stage

    def state_dict(self) -> dict[str, Any]:
        return {"phase_limit": self.phase_limit, "boost": self.boost.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.phase_limit = state["phase_limit"]
        self.boost.load_state_dict(state["boost"])
