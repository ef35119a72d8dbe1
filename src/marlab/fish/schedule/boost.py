"""The escape boost: how fast fish swim outwards at their start, per phase, and adapted to how early they die."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from marlab.fish.schedule.phases import stretched
from marlab.fish.schedule.syntax import keyed, number, whole
from marlab.lab.checks import at_least, share
from marlab.lab.errors import UserError

V32_SPEEDS = (None, None, 0.76, 0.78, 0.82, 0.82, 0.82)
V32_FLOORS = (None, None, 0.76, 0.78, 0.80, 0.80, 0.80)


@dataclass(frozen=True)
class BoostConfig:
    """The boost of each phase; a list that is none is v32's, stretched over the curriculum's phases."""

    floor_default: float = 0.75
    """The boost never falls below this, where a phase names no floor."""
    phase_speeds: str | None = None
    """Boost per phase as phase:speed, such as 3:0.76,4:0.78; empty: escape_boost_speed in every phase."""
    phase_floors: str | None = None
    """Lowest boost per phase as phase:speed; empty: escape_boost_floor_default in every phase."""
    penalty_caps: str = "0.05:0.8"
    """Highest boost from a density penalty on, as penalty:speed."""

    def __post_init__(self) -> None:
        share(self, "floor_default", prefix="escape_boost_")

    def schedule(self, speed: float, phases: int) -> BoostSchedule:
        """The boost of so many phases; `speed` where a phase names none."""
        return BoostSchedule(
            speed=speed,
            floor=self.floor_default,
            phase_speeds=_per_phase(self.phase_speeds, V32_SPEEDS, "escape_boost_phase_speeds", phases),
            phase_floors=_per_phase(self.phase_floors, V32_FLOORS, "escape_boost_phase_floors", phases),
            penalty_caps=_speeds(keyed(self.penalty_caps, "escape_boost_penalty_caps", number)),
        )


def _per_phase(text: str | None, v32: tuple[float | None, ...], flag: str, phases: int) -> dict[int, float]:
    if text is None:
        return {i: value for i, value in enumerate(stretched(v32, phases), start=1) if value is not None}
    speeds = keyed(text, flag, whole)
    for phase in speeds:
        if not 1 <= phase <= phases:
            raise UserError(f"{flag} names phase {phase}, but the curriculum has phases 1 to {phases}.")
    return _speeds(speeds)


def _speeds(table: dict[Any, float]) -> dict[Any, float]:
    for key, speed in table.items():
        if not 0.0 <= speed <= 1.0:
            raise UserError(f"The escape boost for '{key:g}' is {speed:g}, expected a fraction from 0 to 1.")
    return table


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
    """Iterations whose first deaths the adaptive boost looks at."""
    lower_p10: float = 12.0
    """First deaths before this step ask for the low speed."""
    upper_p10: float = 18.0
    """First deaths after this step ask for the high speed."""
    low_speed: float = 0.76
    """Boost while fish die early."""
    high_speed: float = 0.80
    """Boost while fish live long."""
    min_iteration: int = 12
    """The adaptive boost acts from this iteration on."""
    stage_floor: str = ""
    """Lowest boost per gate stage (from 0) as stage:speed."""
    use_median: bool = True
    """Judge the window by its median; off: by its mean."""

    def __post_init__(self) -> None:
        at_least(self, 1, "window", prefix="adaptive_boost_")
        if self.lower_p10 > self.upper_p10:
            raise UserError("adaptive_boost_lower_p10 must not exceed adaptive_boost_upper_p10.")
        _ = self.stage_floors

    @cached_property
    def stage_floors(self) -> dict[int, float]:
        return _speeds(keyed(self.stage_floor, "adaptive_boost_stage_floor", whole))


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
            "gate_stage": self.gate_stage, "phase": self._phase, "speed": self._speed,
            "signals": list(self._signals),
        }  # fmt: skip

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.gate_stage, self._phase = state["gate_stage"], state["phase"]
        self._speed, self._signals = state["speed"], list(state["signals"])
