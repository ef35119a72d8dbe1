"""The penalty gate: a probe's result decides which phase's density penalty may act.

Each gate stage (0-based) allows the penalty targets up to one phase of the curriculum. A probe is a failure, a
success or neither; enough successes move the stage up, enough failures move it down, and after each move the gate
rests for a while. Every record names the conditions that were not met.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from marlab.lab.errors import UserError
from marlab.lab.stats import binomial_cdf, lower_bound, upper_bound

GateConfidence = Literal["none", "wilson", "clopper_pearson"]
GateRule = Literal["conditions", "score"]
HOPELESS = 0.01
"""A limit that even a perfect policy meets in fewer than this share of probes counts as impossible."""


@dataclass(frozen=True)
class TypeLimits:
    """Limits that differ while a hard-start stage of a certain type (`ne`, `main`, ...) is active."""

    step_one: Mapping[str, float] = field(default_factory=dict)
    early_death: Mapping[str, float] = field(default_factory=dict)
    early_death_window: Mapping[str, float] = field(default_factory=dict)
    p10: Mapping[str, float] = field(default_factory=dict)
    p10_window: Mapping[str, float] = field(default_factory=dict)
    failure_tolerance: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class GateConfig:
    """Limits and patience of the gate; the flags `penalty_gate_*` explain each of them."""

    phase_allowance: tuple[int, ...]
    phase_count: int
    lock_until: int
    required_successes: int = 1
    freeze_iterations: int = 4
    success_freeze_iterations: int = 1
    success_step_one: int = 7
    success_step_one_ratio: float = 0.0
    success_early_death: float = 0.09
    early_death_window: int = 1
    success_p10: float = 120.0
    p10_window: int = 1
    failure_p10: float = 95.0
    failure_min_final: float = 0.5
    failure_tolerance: int = 2
    by_type: TypeLimits = field(default_factory=TypeLimits)
    rule: GateRule = "conditions"
    success_score: float = 0.97
    failure_score: float = 0.85
    confidence: GateConfidence = "none"
    confidence_level: float = 0.8
    subtract_doomed: bool = False

    def __post_init__(self) -> None:
        if not self.phase_allowance:
            raise UserError("penalty_gate_phase_allowance is empty, expected one phase per gate stage such as 4,5,6.")
        for phase in self.phase_allowance:
            if not 1 <= phase <= self.phase_count:
                raise UserError(
                    f"penalty_gate_phase_allowance names phase {phase}, but the curriculum has phases 1 to "
                    f"{self.phase_count}."
                )
        if list(self.phase_allowance) != sorted(self.phase_allowance):
            raise UserError("penalty_gate_phase_allowance must not fall from one stage to the next.")
        if not 0.5 <= self.confidence_level < 1.0:
            raise UserError(f"penalty_gate_confidence_level is {self.confidence_level:g}, expected 0.5 to below 1.")
        if self.failure_score > self.success_score:
            raise UserError("penalty_gate_failure_score must not exceed penalty_gate_success_score.")
        by_type = (self.by_type.p10_window, self.by_type.early_death_window, self.by_type.failure_tolerance)
        patience = [self.p10_window, self.early_death_window, self.failure_tolerance]
        if min([*patience, *(value for table in by_type for value in table.values())]) < 1:
            raise UserError("penalty gate windows and failure tolerance must be at least 1.")


@dataclass(frozen=True)
class ProbeOutcome:
    """The numbers of a probe that the gate looks at."""

    samples: int  # episodes times fish
    step_one_count: int  # deaths at step 1
    early_death_fraction: float  # share of fish dead before step 100
    fish_death_p10: float  # 10th percentile over fish of the death step, survivors at 500
    min_final_survival: float  # worst episode
    avg_final_survival: float
    doomed: float = 0.0  # fish that no action could save at step 1; 0 when not computed
    tail_type: str | None = None  # type of the active hard-start stage

    @property
    def step_one_ratio(self) -> float:
        return self.step_one_count / self.samples


@dataclass(frozen=True)
class Condition:
    """One test with the two numbers it compared."""

    name: str
    met: bool
    value: float | None
    limit: float

    def __str__(self) -> str:
        value = "not yet known" if self.value is None else f"{self.value:.6g}"
        return f"{self.name}: {value} against {self.limit:.6g}"


class PenaltyGate:
    """The state machine; `evaluate` is called once per probe and returns the record of what it decided."""

    def __init__(self, config: GateConfig) -> None:
        self.config = config
        self.stage = 0
        self.success_streak = 0
        self.failure_streak = 0
        self.freeze_until = 0
        self.last_success: int | None = None
        self._p10: list[float] = []
        self._early: list[float] = []

    @property
    def phase_limit(self) -> int:
        """Last phase (1-based) whose penalty target may act."""
        return self.config.phase_allowance[self.stage]

    @property
    def at_last_stage(self) -> bool:
        return self.stage == len(self.config.phase_allowance) - 1

    def evaluate(self, iteration: int, probe: ProbeOutcome) -> dict[str, Any]:
        """Judge a probe and move; the record is plain JSON."""
        self._p10.append(probe.fish_death_p10)
        self._early.append(self._early_share(probe)[0])
        failures = self._failure_tests(probe)
        conditions = self._success_tests(probe)
        failed = not all(test.met for test in failures)
        success = all(test.met for test in conditions)
        self.failure_streak = self.failure_streak + 1 if failed else 0
        before = self.stage
        event = self._move(iteration, failed, success, self._limit("failure_tolerance", probe))
        if success:
            self.last_success = iteration
        unmet = [test for test in (*failures, *conditions) if not test.met]
        names = [test.name for test in unmet]
        reasons = [str(test) for test in unmet]
        if event in ("locked", "frozen"):
            until = self.config.lock_until if event == "locked" else self.freeze_until
            names.insert(0, event)
            reasons.insert(0, f"{event} until iteration {until}")
        return {
            "iteration": iteration,
            "event": event,
            "stage": self.stage,
            "phase_limit": self.phase_limit - 1,  # 0-based, as in the original's records
            "limit_phase": self.phase_limit,
            "success_streak": self.success_streak,
            "failure_streak": self.failure_streak,
            "freeze_until": self.freeze_until,
            "failure_detected": failed,
            "success_detected": success,
            "rolling_p10_median": self._median(self._p10, "p10_window", probe),
            "rolling_early_death_median": self._median(self._early, "early_death_window", probe),
            "step_one_death_ratio": probe.step_one_ratio,
            "tail_stage_type": probe.tail_type,
            "last_success": self.last_success,
            "changed": self.stage != before,
            "failed_conditions": names,
            "reason": "; ".join(reasons),
        }

    def _move(self, iteration: int, failed: bool, success: bool, tolerance: float) -> str:
        """The first matching row of the transition table."""
        c = self.config
        if failed and self.stage > 0 and self.failure_streak >= tolerance:
            self.stage -= 1
            self.success_streak = self.failure_streak = 0
            self.freeze_until = iteration + c.freeze_iterations
            return "rollback"
        if failed:
            self.success_streak = 0
            self.freeze_until = iteration + c.freeze_iterations
            return "failure_hold"
        if iteration <= c.lock_until:
            self.success_streak = 0
            return "locked"
        if iteration < self.freeze_until:
            self.success_streak = 0
            return "frozen"
        if success and self.success_streak + 1 >= c.required_successes and not self.at_last_stage:
            self.stage += 1
            self.success_streak = 0
            self.freeze_until = iteration + c.freeze_iterations
            return "advance"
        if success:
            self.success_streak += 1
            self.freeze_until = max(self.freeze_until, iteration + c.success_freeze_iterations)
            return "success_progress"
        if c.rule == "conditions":  # between the two thresholds of a score the streak stays: that is the hysteresis
            self.success_streak = 0
        return "noop"

    # --- what is tested -------------------------------------------------------------------------------------

    def _failure_tests(self, probe: ProbeOutcome) -> list[Condition]:
        c = self.config
        if c.rule == "score":
            high = self._score(probe, upper_bound)
            return [Condition("failure_score", high >= c.failure_score, high, c.failure_score)]
        p10, worst = probe.fish_death_p10, probe.min_final_survival
        return [
            Condition("failure_p10", p10 >= c.failure_p10, p10, c.failure_p10),
            Condition("failure_min_final", worst >= c.failure_min_final, worst, c.failure_min_final),
        ]

    def _success_tests(self, probe: ProbeOutcome) -> list[Condition]:
        c = self.config
        if c.rule == "score":
            low = self._score(probe, lower_bound)
            return [Condition("success_score", low >= c.success_score, low, c.success_score)]
        tests = []
        count_limit = self._limit("step_one", probe)
        if count_limit >= 0:
            count = self._avoidable(probe.step_one_count, probe)[0]
            tests.append(Condition("success_step_one", count <= count_limit, count, count_limit))
        if c.success_step_one_ratio > 0:
            ratio = self._bounded(probe.step_one_count, probe)
            limit = c.success_step_one_ratio
            tests.append(Condition("success_step_one_ratio", ratio <= limit, ratio, limit))
        early, limit = self._early_for_success(probe), self._limit("early_death", probe)
        tests.append(Condition("success_early_death", early is not None and early <= limit, early, limit))
        p10_limit = self._limit("p10", probe)
        if p10_limit > 0:
            median = self._median(self._p10, "p10_window", probe)
            tests.append(Condition("success_p10", median is not None and median >= p10_limit, median, p10_limit))
        return tests

    def _early_for_success(self, probe: ProbeOutcome) -> float | None:
        if self._limit("early_death_window", probe) > 1:
            return self._median(self._early, "early_death_window", probe)
        return self._early_share(probe)[1]

    def _early_share(self, probe: ProbeOutcome) -> tuple[float, float]:
        """Share of early deaths, plain and as the bound that is compared with the limit."""
        deaths = probe.early_death_fraction * probe.samples
        return _share(*self._avoidable(deaths, probe)), self._bounded(deaths, probe)

    def _bounded(self, deaths: float, probe: ProbeOutcome) -> float:
        hits, trials = self._avoidable(deaths, probe)
        if self.config.confidence == "none":
            return _share(hits, trials)
        return upper_bound(hits, trials, self.config.confidence_level, self.config.confidence)

    def _avoidable(self, deaths: float, probe: ProbeOutcome) -> tuple[float, float]:
        """Deaths and fish without those that were doomed from the start, if they are to be subtracted."""
        doomed = probe.doomed if self.config.subtract_doomed else 0.0
        return max(deaths - doomed, 0.0), max(probe.samples - doomed, 0.0)

    def _score(self, probe: ProbeOutcome, bound: Any) -> float:
        """Share of the fish that could be saved and were; a bound of it if a confidence is asked for."""
        saved = probe.avg_final_survival * probe.samples
        trials = max(probe.samples - (probe.doomed if self.config.subtract_doomed else 0.0), saved)
        if self.config.confidence == "none":
            return _share(saved, trials)
        return float(bound(saved, trials, self.config.confidence_level, self.config.confidence))

    def _limit(self, name: str, probe: ProbeOutcome) -> float:
        """A limit, as its tail type changes it."""
        plain = {
            "step_one": self.config.success_step_one,
            "early_death": self.config.success_early_death,
            "early_death_window": self.config.early_death_window,
            "p10": self.config.success_p10,
            "p10_window": self.config.p10_window,
            "failure_tolerance": self.config.failure_tolerance,
        }[name]
        return float(getattr(self.config.by_type, name).get(probe.tail_type, plain))

    def _median(self, history: Sequence[float], window: str, probe: ProbeOutcome) -> float | None:
        """Median of the last values, None until the window is full."""
        size = int(self._limit(window, probe))
        return statistics.median(history[-size:]) if len(history) >= size else None

    # --- saving ---------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        return {
            "stage": self.stage,
            "success_streak": self.success_streak,
            "failure_streak": self.failure_streak,
            "freeze_until": self.freeze_until,
            "last_success": self.last_success,
            "p10": list(self._p10),
            "early": list(self._early),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.stage, self.freeze_until = state["stage"], state["freeze_until"]
        self.success_streak, self.failure_streak = state["success_streak"], state["failure_streak"]
        self.last_success = state["last_success"]
        self._p10, self._early = list(state["p10"]), list(state["early"])


def _share(hits: float, trials: float) -> float:
    return hits / trials if trials > 0 else 0.0


def check_reachable(config: GateConfig, doomed_share: float, samples: int, *, refuse: bool = True) -> list[str]:
    """Refuse a gate that no policy can pass; return a sentence for each limit met only by luck.

    `doomed_share` is the share of fish that die at step one whatever they do, `samples` the fish of one probe.
    With `refuse` off (compat) an impossible limit is only another sentence.
    """
    if config.rule == "score" or config.subtract_doomed:
        return []
    doubts = []
    limits = [config.success_step_one] if config.success_step_one >= 0 else []
    names = ["penalty_gate_success_step_one"] * len(limits)
    if config.success_step_one_ratio > 0:
        limits.append(math.floor(config.success_step_one_ratio * samples))
        names.append("penalty_gate_success_step_one_ratio")
    for name, limit in zip(names, limits):
        chance = binomial_cdf(limit, samples, doomed_share)
        floor = f"{doomed_share:.2%} of {samples} fish die at step one whatever they do"
        if chance < HOPELESS and refuse:
            raise UserError(
                f"{name} allows {limit} step-one deaths, but {floor}, about {doomed_share * samples:.0f}; "
                "raise the limit or set --penalty-gate-subtract-doomed."
            )
        if limit < doomed_share * samples:
            doubts.append(f"{name} is met only by luck: {floor}; a perfect policy passes {chance:.0%} of the probes.")
    return doubts
