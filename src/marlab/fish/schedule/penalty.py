"""The penalty for crowding: one target per phase, some of them approached by a ramp, capped while the lock holds."""

from __future__ import annotations

from dataclasses import dataclass

from marlab.fish.schedule.phases import Phase, phase_at, stretched
from marlab.fish.schedule.syntax import numbers, wholes
from marlab.lab.errors import UserError

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
