"""What changes from iteration to iteration: fish count, density penalty, entropy, learning rate, escape boost.

Iterations and phases count from 1. Everything here is plain arithmetic on the config; only `EscapeBoost` and
`Schedules` carry state, and both can be saved and restored.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from marlab.fish.schedule.syntax import number, whole, words
from marlab.lab.errors import UserError

LrSchedule = Literal["constant", "cosine", "warm_cosine"]


# --- phases -------------------------------------------------------------------------------------------------


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


def parse_curriculum(text: str, total_iterations: int, num_fish: int) -> tuple[Phase, ...]:
    """`15:9,20:10` = 15 fish for 9 iterations, then 20 fish for 10; an empty text is one phase of `num_fish`."""
    pairs = [_fish_and_iterations(word) for word in words(text)] or [(num_fish, total_iterations)]
    total = sum(iterations for _, iterations in pairs)
    if total != total_iterations:
        raise UserError(
            f"curriculum '{text}' covers {total} iterations, but total_iterations is {total_iterations}; "
            "both must be equal."
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


# --- density penalty ----------------------------------------------------------------------------------------


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


# --- entropy and learning rate ------------------------------------------------------------------------------


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


def lr_scale(schedule: LrSchedule, elapsed: float) -> float:
    """The factor on the learning rate after the fraction `elapsed` (0 to 1) of the schedule."""
    if schedule == "constant":
        return 1.0
    if schedule == "cosine":
        return 0.5 * (1.0 + math.cos(math.pi * elapsed))
    if elapsed <= 0.2:  # warm_cosine: a quick straight fall to one half, then a cosine to nothing
        return 1.0 - 2.5 * elapsed
    return 0.25 * (1.0 + math.cos(math.pi * (elapsed - 0.2) / 0.8))


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


# --- escape boost -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BoostSchedule:
    """Start speed of the fish, as a fraction of their top speed, per phase."""

    speed: float
    floor: float
    phase_speeds: Mapping[int, float] = field(default_factory=dict)
    phase_floors: Mapping[int, float] = field(default_factory=dict)
    penalty_caps: Mapping[float, float] = field(default_factory=dict)  # penalty threshold -> highest speed

    def floor_in(self, phase: int) -> float:
        return self.phase_floors.get(phase, self.floor)

    def base(self, phase: int) -> float:
        """The phase's speed, raised to its floor."""
        return max(self.phase_speeds.get(phase, self.speed), self.floor_in(phase))

    def capped(self, speed: float, penalty: float) -> float:
        """`speed` under every cap whose penalty threshold is reached."""
        return min([speed, *(cap for threshold, cap in self.penalty_caps.items() if penalty >= threshold)])


@dataclass(frozen=True)
class AdaptiveBoost:
    """Early first deaths ask for a slower start, late ones allow a faster one."""

    window: int = 4
    lower_p10: float = 12.0
    upper_p10: float = 18.0
    low_speed: float = 0.76
    high_speed: float = 0.80
    min_iteration: int = 12
    stage_floors: Mapping[int, float] = field(default_factory=dict)
    use_median: bool = True


class EscapeBoost:
    """The boost that is in force: phase base, then the adaptive controller, then the penalty caps."""

    def __init__(self, schedule: BoostSchedule, adaptive: AdaptiveBoost | None) -> None:
        self.schedule, self.adaptive = schedule, adaptive
        self.gate_stage = 0
        self._phase = 0  # none yet
        self._speed = schedule.speed
        self._signals: list[float] = []  # the last first-death percentiles, oldest first

    def begin_iteration(self, phase: int, penalty: float) -> float:
        """The boost to push to the arenas; a new phase starts again from its own base."""
        if phase != self._phase:
            self._phase, self._speed = phase, self.schedule.base(phase)
        return self.schedule.capped(self._speed, penalty)

    def observe(self, iteration: int, first_death_p10: float | None) -> bool:
        """Take in an iteration's first-death percentile (None: no episode ended); True if the speed changed."""
        if self.adaptive is None or first_death_p10 is None:
            return False
        self._signals = [*self._signals, float(first_death_p10)][-self.adaptive.window :]
        if iteration < self.adaptive.min_iteration:
            return False
        level = (statistics.median if self.adaptive.use_median else statistics.fmean)(self._signals)
        if level < self.adaptive.lower_p10:
            target = self.adaptive.low_speed
        elif level > self.adaptive.upper_p10:
            target = self.adaptive.high_speed
        else:
            return False
        before, self._speed = self._speed, self._towards(target)
        return self._speed != before

    def _towards(self, target: float) -> float:
        assert self.adaptive is not None
        stage_floor = self.adaptive.stage_floors.get(self.gate_stage, 0.0)
        floor = max(self.schedule.floor_in(self._phase), stage_floor)
        return max(floor, min(max(self.schedule.base(self._phase), floor), target))

    def state_dict(self) -> dict[str, Any]:
        return {
            "gate_stage": self.gate_stage,
            "phase": self._phase,
            "speed": self._speed,
            "signals": list(self._signals),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.gate_stage, self._phase = state["gate_stage"], state["phase"]
        self._speed, self._signals = state["speed"], list(state["signals"])


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
