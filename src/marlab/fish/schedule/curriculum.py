"""What changes from iteration to iteration: density penalty, entropy, learning rate, and all schedules behind one call.

Iterations and phases count from 1. Everything here is plain arithmetic on the config; only `EscapeBoost` and
`Schedules` carry state, and both can be saved and restored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from marlab.fish.schedule.boost import EscapeBoost
from marlab.fish.schedule.phases import Phase, phase_at, stretched
from marlab.fish.schedule.syntax import number, numbers, whole, wholes, words
from marlab.lab.errors import UserError
from marlab.lab.ppo.config import LrSchedule, lr_scale

V32_TARGETS = (0.0, 0.02, 0.04, 0.05, 0.055, 0.06, 0.065)
V32_RAMPS = (False, False, False, False, False, True, True)
V32_PLATEAUS = (0, 0, 6, 6, 4, 0, 0)


@dataclass(frozen=True)
class PenaltyConfig:
    """How the penalty for crowding rises; a list that is none is v32's, stretched over the curriculum's phases."""

    phase_targets: str | None = None
    """Penalty per phase such as 0.0,0.02,0.04; empty: density_penalty_coef in every phase."""
    ramp_phases: str | None = None
    """Phases (from 1) that approach their target step by step, such as 6,7."""
    phase_plateaus: str | None = None
    """Iterations a ramp waits before it rises, per phase such as 0,0,6; empty: none."""
    lock_value: float = 0.04
    """The penalty stays at or below this while the lock holds."""
    lock_until: int = 28
    """Last iteration of the lock; 0 or less: no lock."""

    def schedule(self, phases: tuple[Phase, ...], base: float) -> PenaltySchedule:
        """The penalty over these phases, from `base` before the first."""
        count = len(phases)
        if self.phase_targets is None:
            targets = tuple(stretched(V32_TARGETS, count))
        else:
            targets = numbers(self.phase_targets, "density_penalty_phase_targets") or (base,) * count
        if self.ramp_phases is None:
            ramps = tuple(i for i, ramp in enumerate(stretched(V32_RAMPS, count), start=1) if ramp)
        else:
            ramps = wholes(self.ramp_phases, "density_penalty_ramp_phases")
        if self.phase_plateaus is None:
            waits = zip(stretched(V32_PLATEAUS, count), phases)
            plateaus = tuple(min(wait, phase.iterations - 1) for wait, phase in waits)
        else:
            plateaus = wholes(self.phase_plateaus, "density_penalty_phase_plateaus") or (0,) * count
        return PenaltySchedule(phases, base, targets, frozenset(ramps), plateaus, self.lock_value, self.lock_until)


@dataclass(frozen=True)
class PenaltySchedule:
    """One penalty target per phase, some of them approached by a ramp, capped while the lock holds."""

    phases: tuple[Phase, ...]
    base: float
    targets: tuple[float, ...]
    ramp_phases: frozenset[int]
    plateaus: tuple[int, ...]
    lock_value: float
    lock_until: int

    def __post_init__(self) -> None:
        for flag, values in (("phase_targets", self.targets), ("phase_plateaus", self.plateaus)):
            if len(values) != len(self.phases):
                raise UserError(
                    f"density_penalty_{flag} has {len(values)} entries, but the curriculum has "
                    f"{len(self.phases)} phases; give one per phase."
                )
        for index in sorted(self.ramp_phases):
            if not 1 <= index <= len(self.phases):
                raise UserError(
                    f"density_penalty_ramp_phases names phase {index}, but the phases are 1 to {len(self.phases)}."
                )
            if self.plateaus[index - 1] >= self.phases[index - 1].iterations:
                raise UserError(
                    f"density_penalty_phase_plateaus holds phase {index} for {self.plateaus[index - 1]} of its "
                    f"{self.phases[index - 1].iterations} iterations, so its ramp never reaches the target."
                )
        if min(self.plateaus) < 0 or min(*self.targets, self.base) < 0:
            raise UserError("density penalty targets, base and plateaus must not be negative.")

    def value(self, iteration: int, phase_limit: int | None = None) -> float:
        """The coefficient of an iteration; no phase after `phase_limit` (1-based) may act."""
        phase = phase_at(self.phases, iteration)
        if phase_limit is not None and phase.index > phase_limit:
            phase = self.phases[phase_limit - 1]
        value = self._unlocked(phase, min(iteration, phase.last))
        return min(value, self.lock_value) if iteration <= self.lock_until else value

    def _unlocked(self, phase: Phase, iteration: int) -> float:
        target = self.targets[phase.index - 1]
        if phase.index not in self.ramp_phases:
            return target
        start = self.targets[phase.index - 2] if phase.index > 1 else self.base
        plateau = self.plateaus[phase.index - 1]
        risen = iteration - phase.first - plateau  # 0 on the ramp's first iteration
        length = phase.iterations - plateau - 1  # `risen` on the ramp's last iteration
        if risen < 0:
            return start
        return target if length == 0 else start + (target - start) * risen / length


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
        self, phases: tuple[Phase, ...], penalty: PenaltySchedule, boost: EscapeBoost, *, entropy_base: float,
        entropy_windows: tuple[EntropyWindow, ...], learning_rate: float, lr_schedule: LrSchedule,
        lr_progress: Literal["phase", "run"], phase_limit: int | None,
    ) -> None:  # fmt: skip
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
            iteration=iteration, phase=phase, new_phase=iteration == phase.first, density_penalty=penalty,
            entropy_coef=entropy_coef(iteration, self.entropy_base, self.entropy_windows),
            learning_rate=self.learning_rate * lr_scale(self.lr_schedule, elapsed),
            escape_boost=self.boost.begin_iteration(phase.index, penalty),
        )  # fmt: skip

    def follow_gate(self, stage: int, phase_limit: int) -> None:
        """Tell the penalty its last allowed phase (1-based) and the boost the gate's stage (0-based)."""
        self.phase_limit, self.boost.gate_stage = phase_limit, stage

    def state_dict(self) -> dict[str, Any]:
        return {"phase_limit": self.phase_limit, "boost": self.boost.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.phase_limit = state["phase_limit"]
        self.boost.load_state_dict(state["boost"])
