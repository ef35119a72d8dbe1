"""The penalty gate: a probe's result decides which phase's density penalty may act.

Each gate stage (0-based) allows the penalty targets up to one phase of the curriculum. A probe is a failure, a
success or neither; enough successes move the stage up, enough failures move it down, and after each move the gate
rests for a while. Every record names the conditions that were not met.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from marlab.fish.schedule.phases import V32_PHASES
from marlab.fish.schedule.syntax import keyed, wholes, word
from marlab.lab.checks import share
from marlab.lab.errors import UserError
from marlab.lab.stats import binomial_cdf, lower_bound, upper_bound

GateConfidence = Literal["none", "wilson", "clopper_pearson"]
GateRule = Literal["conditions", "score"]
HOPELESS = 0.01
"""A limit that even a perfect policy meets in fewer than this share of probes counts as impossible."""


BY_STAGE = {
    # limit: the field with its values for single types of hard starts
    "success_step_one": "success_step_one_by_stage",
    "success_early_death": "success_early_death_by_stage",
    "success_early_death_window": "success_early_death_window_by_stage",
    "success_p10": "success_first_death_p10_by_stage",
    "success_median_window": "success_p10_median_window_by_stage",
    "failure_tolerance": "failure_tolerance_by_stage",
}
V32_ALLOWANCE = (4, 5, 6)


@dataclass(frozen=True)
class GateConfig:
    """Limits and patience of the gate."""

    phase_allowance: str | None = None
    """Last phase whose penalty may act, per gate stage such as 4,5,6; none: v32's, stretched over the curriculum."""
    required_successes: int = 1
    """Successful probes in a row that move the gate up; 0 or less: no gate."""
    freeze_iterations: int = 4
    """Rest after a move or a failure."""
    success_freeze_iterations: int = 1
    """Rest after a success that does not move the gate yet."""
    success_step_one: int = 7
    """A success has at most this many step-one deaths; a negative number asks for nothing."""
    success_step_one_ratio: float = 0.0
    """A success has at most this share of step-one deaths; 0 asks for nothing."""
    success_early_death: float = 0.09
    """A success has at most this share of deaths before step 100."""
    success_early_death_window: int = 1
    """Judge early deaths by the median of so many probes."""
    success_p10: float = 120.0
    """A success has a 10th percentile of death steps of at least this; 0 or less asks for nothing."""
    success_median_window: int = 1
    """Judge that percentile by the median of so many probes."""
    failure_p10: float = 95.0
    """A probe fails below this 10th percentile of death steps."""
    failure_min_final: float = 0.5
    """A probe fails when its worst episode keeps fewer than this share of the fish."""
    failure_tolerance: int = 2
    """Failures in a row that move the gate down."""
    lock_iteration: int = -1
    """The gate does not move up before this iteration has passed; 0 or less: density_penalty_lock_until."""
    success_step_one_by_stage: str = ""
    """Other step-one counts while a type of hard start is active, as type:count such as ne:18,main:45."""
    success_early_death_by_stage: str = ""
    """Other early-death shares per type of hard start."""
    success_early_death_window_by_stage: str = ""
    """Other early-death windows per type of hard start."""
    success_first_death_p10_by_stage: str = ""
    """Other percentiles per type of hard start."""
    success_p10_median_window_by_stage: str = ""
    """Other percentile windows per type of hard start."""
    failure_tolerance_by_stage: str = ""
    """Other failure tolerances per type of hard start."""
    rule: GateRule = "conditions"
    """Judge probes by the conditions above, or by one score (saved share of the fish) with two thresholds."""
    success_score: float = 0.97
    """Score from which a probe is a success."""
    failure_score: float = 0.85
    """Score below which a probe is a failure; in between nothing changes."""
    confidence: GateConfidence = "none"
    """Compare shares with their limits by this one-sided confidence bound instead of the plain share."""
    confidence_level: float = 0.8
    """Level of that bound."""
    subtract_doomed: bool = False
    """Leave fish that no action could save at step one out of the gate's shares."""

    def __post_init__(self) -> None:
        shares = (
            "failure_min_final", "success_early_death", "success_step_one_ratio", "success_score", "failure_score",
        )  # fmt: skip
        share(self, *shares, prefix="penalty_gate_")
        if not 0.5 <= self.confidence_level < 1.0:
            raise UserError(f"penalty_gate_confidence_level is {self.confidence_level:g}, expected 0.5 to below 1.")
        if self.failure_score > self.success_score:
            raise UserError("penalty_gate_failure_score must not exceed penalty_gate_success_score.")
        patience = ("success_median_window", "success_early_death_window", "failure_tolerance")
        values = [v for name in patience for v in (getattr(self, name), *self.by_type[name].values())]
        if min(values) < 1:
            raise UserError("penalty gate windows and failure tolerance must be at least 1.")

    @property
    def is_on(self) -> bool:
        return self.required_successes > 0

    @cached_property
    def by_type(self) -> dict[str, dict[str, float]]:
        """Limits that differ while a hard start of a certain type (`ne`, `main`, ...) is active."""
        return {limit: keyed(getattr(self, f), f"penalty_gate_{f}", word) for limit, f in BY_STAGE.items()}

    def limit(self, field: str, tail_type: str | None) -> float:
        """A limit, as the type of the active hard start changes it."""
        return float(self.by_type[field].get(tail_type or "", getattr(self, field)))

    def allowance(self, phases: int) -> tuple[int, ...]:
        """The last phase (1-based) whose penalty may act, for each gate stage, in a curriculum of so many phases."""
        flag = "penalty_gate_phase_allowance"
        if self.phase_allowance is None:
            return tuple(sorted({math.ceil(phase * phases / V32_PHASES) for phase in V32_ALLOWANCE}))
        allowed = wholes(self.phase_allowance, flag)
        if not allowed:
            raise UserError(f"{flag} is empty, expected one phase per gate stage such as 4,5,6.")
        for phase in allowed:
            if not 1 <= phase <= phases:
                raise UserError(f"{flag} names phase {phase}, but the curriculum has phases 1 to {phases}.")
        if list(allowed) != sorted(allowed):
            raise UserError(f"{flag} must not fall from one stage to the next.")
        return allowed


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

    def __init__(self, config: GateConfig, allowance: tuple[int, ...], lock_until: int = 0) -> None:
        """`allowance`: the last phase (1-based) whose penalty may act, per stage; no stage up until `lock_until`."""
        self.config, self.allowance, self.lock_until = config, allowance, lock_until
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
        return self.allowance[self.stage]

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
        event = self._move(iteration, failed, success, self.config.limit("failure_tolerance", probe.tail_type))
        if success:
            self.last_success = iteration
        unmet = [test for test in (*failures, *conditions) if not test.met]
        names = [test.name for test in unmet]
        reasons = [str(test) for test in unmet]
        if event in ("locked", "frozen"):
            until = self.lock_until if event == "locked" else self.freeze_until
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
            "rolling_p10_median": self._median(self._p10, "success_median_window", probe),
            "rolling_early_death_median": self._median(self._early, "success_early_death_window", probe),
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
        if iteration <= self.lock_until:
            self.success_streak = 0
            return "locked"
        if iteration < self.freeze_until:
            self.success_streak = 0
            return "frozen"
        if success and self.success_streak + 1 >= c.required_successes and self.stage < len(self.allowance) - 1:
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
        count_limit = c.limit("success_step_one", probe.tail_type)
        if count_limit >= 0:
            count = self._avoidable(probe.step_one_count, probe)[0]
            tests.append(Condition("success_step_one", count <= count_limit, count, count_limit))
        if c.success_step_one_ratio > 0:
            ratio = self._bounded(probe.step_one_count, probe)
            limit = c.success_step_one_ratio
            tests.append(Condition("success_step_one_ratio", ratio <= limit, ratio, limit))
        early, limit = self._early_for_success(probe), c.limit("success_early_death", probe.tail_type)
        tests.append(Condition("success_early_death", early is not None and early <= limit, early, limit))
        p10_limit = c.limit("success_p10", probe.tail_type)
        if p10_limit > 0:
            median = self._median(self._p10, "success_median_window", probe)
            tests.append(Condition("success_p10", median is not None and median >= p10_limit, median, p10_limit))
        return tests

    def _early_for_success(self, probe: ProbeOutcome) -> float | None:
        if self.config.limit("success_early_death_window", probe.tail_type) > 1:
            return self._median(self._early, "success_early_death_window", probe)
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

    def _median(self, history: Sequence[float], window: str, probe: ProbeOutcome) -> float | None:
        """Median of the last values, None until the window is full."""
        size = int(self.config.limit(window, probe.tail_type))
        return statistics.median(history[-size:]) if len(history) >= size else None

    # --- saving ---------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        return {
            "stage": self.stage, "success_streak": self.success_streak, "failure_streak": self.failure_streak,
            "freeze_until": self.freeze_until, "last_success": self.last_success, "p10": list(self._p10),
            "early": list(self._early),
        }  # fmt: skip

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
