"""What a diagnosis is made of: checks against gates, tables, pictures, and the verdict on every module.

A module that misses a gate is not always at fault: a belief cannot be right when the predictions it is computed from
are wrong. So a check names what it needs; a missed check is blamed on its module only if everything it needs holds.
Otherwise the module is *blocked*: look at the fault before it first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from marlab.lab.errors import UserError
from marlab.lab.measured import show

Module = Literal["data", "goal VAE", "MOA", "belief", "world model", "PPO", "planner", "self-play"]
MODULES: tuple[Module, ...] = get_args(Module)
Status = Literal["pass", "fail", "blocked"]


@dataclass(frozen=True)
class Gates:
    """What every module must reach before the next one may build on it."""

    replay: float = 1.0
    """Data: share of rows that a replay of the game reproduces."""
    labels: float = 1.0
    """Data: share of rows whose action is legal, its player's own, and possible for the player's type."""
    rows_after_exit: float = 0.0
    """Data: share of the rows learnt from whose player had left."""
    overfit: float = 0.01
    """MOA: nats above the label noise at which one batch must be known by heart."""
    free_excess: float = 0.15
    """MOA: nats above the exact prediction of a player of unknown type, without any goal."""
    top1: float = 0.62
    """MOA: share of right first guesses on validation episodes."""
    top3: float = 0.88
    """MOA: share of actions among the first three guesses."""
    top1_typed: float = 0.67
    """MOA: top1 where the true type is given."""
    top3_typed: float = 0.90
    """MOA: top3 where the true type is given."""
    ece: float = 0.05
    """MOA: expected calibration error where the true type is given."""
    cross_entropy: float = 0.75
    """MOA: nats where goals come from the history."""
    probe_gain: float = 0.10
    """Goal VAE: how much better a player's type is read from the code than from the situation, at t = 4."""
    reconstruction: float = 0.5
    """Goal VAE: reconstruction error as a share of that of the mean situation."""
    active_units: float = 2
    """Goal VAE: dimensions of the code that are in use."""
    belief_step: float = 0.90
    """Belief: probability of the true type at t = 4."""
    belief_prior: float = 0.85
    """Belief: probability of the true type before the first step, after ten episodes."""
    belief_learned: float = 0.90
    """Belief: as belief_step, with what the MOA predicts instead of the exact rules."""
    teleport: float = 0.001
    """World model: share of players who jump by two cells or more."""
    vanish: float = 0.005
    """World model: share of present players who are not shown."""
    position: float = 0.995
    """World model: share of players on the right cell."""
    position_5: float = 0.97
    """World model: the same after five imagined steps."""
    obs_mse: float = 7e-4
    """World model: mean squared error of unrounded cells."""
    reward_mse: float = 1e-3
    """World model: mean squared error of rewards."""
    reward_share: float = 2.5 / 3.0
    """PPO: mean reward of all players as a share of the team optimum (2.5 of 3 in msh_4x4)."""
    seat_spread: float = 0.3
    """PPO: best minus worst seat, mean over seeds, in units of msh_4x4's optimum of 3."""
    value_ratio: float = 3.0
    """PPO: largest over smallest value error of the seats."""
    reply_share: float = 0.9
    """PPO among rule-based players: its reward as a share of the best rule-based reply."""
    online_excess: float = 0.5
    """MOA in training: nats above the players' own randomness in the last tenth of a training. Plans differ from
    search to search, which that floor does not know, so against planners the excess does not reach 0."""
    improved: float = 0.99
    """Planner: share of decisions whose plan is no worse than the prior by the planner's own values."""
    scaled_spread: float = 1.0
    """Planner: beta times the normalised spread of Q; below it the plan is as good as uniform."""
    behaviour_entropy: float = 1.2
    """Planner: nats of what players act by; random players have about 1.45."""
    self_play_share: float = 2.6 / 3.0
    """Self-play: mean reward of all players as a share of the team optimum (2.6 of 3 in msh_4x4)."""
    stayed: float = 0.95
    """Self-play: the last tenth of a training as a share of the highest reward it had reached."""


@dataclass(frozen=True)
class Check:
    """A figure against its gate."""

    module: Module
    name: str
    value: float | None  # None: it could not be measured
    gate: float
    sense: Literal["at least", "at most"]
    note: float | None = None  # the lab note's figure
    needs: tuple[str, ...] = ()  # modules, or "module/name" of single checks, without which this one says nothing
    run: str = ""  # which run it is about

    @property
    def key(self) -> str:
        return f"{self.module}/{self.name}"

    @property
    def met(self) -> bool:
        if self.value is None or math.isnan(self.value):
            return False
        return self.value >= self.gate if self.sense == "at least" else self.value <= self.gate

    def __str__(self) -> str:
        return f"{self.name}: {number(self.value)} ({self.sense} {number(self.gate)})"


@dataclass(frozen=True)
class Verdict:
    """What is said about a module, and the check that decided it."""

    module: Module
    status: Status
    decided_by: Check
    because: tuple[str, ...] = ()  # blocked: the missed checks it depends on

    def __str__(self) -> str:
        return f"{self.module} ({self.decided_by.run}): {self.status}, {self.why}"

    @property
    def why(self) -> str:
        """The figure that decides and, for a blocked module, what to look at first."""
        return f"{self.decided_by}; first look at {self.because[0]}" if self.because else str(self.decided_by)


def verdicts(checks: Sequence[Check]) -> list[Verdict]:
    """One verdict per module and run that has checks, in the order in which modules build on each other."""
    missed = [check for check in checks if not check.met]
    found: list[Verdict] = []
    for module in MODULES:
        for run in dict.fromkeys(check.run for check in checks if check.module == module):
            own = [check for check in checks if check.module == module and check.run == run]
            wrong = [check for check in own if not check.met]
            blamed = [check for check in wrong if not _causes(check, missed)]
            if blamed:
                found.append(Verdict(module, "fail", blamed[0]))
            elif wrong:
                found.append(Verdict(module, "blocked", wrong[0], tuple(_causes(wrong[0], missed))))
            else:
                found.append(Verdict(module, "pass", own[0]))
    return found


def _causes(check: Check, missed: Sequence[Check]) -> list[str]:
    """The missed checks that a check needs: of its own run, or of the data."""
    return [
        other.key
        for other in missed
        if (other.module in check.needs or other.key in check.needs)
        and (other.run == check.run or other.module == "data")
    ]


@contextmanager
def fitting_weights(path: Path) -> Iterator[None]:
    """Weights of networks that look different today are bad input, not a bug."""
    try:
        yield
    except RuntimeError as error:
        if "state_dict" not in str(error):
            raise
        raise UserError(f"The models in {path} were made by another version of marlab; pretrain them again.") from None


# --- what is shown ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """A table of the report; `rows` hold numbers, texts or None."""

    title: str
    header: tuple[str, ...]
    rows: list[tuple[Any, ...]]


@dataclass(frozen=True)
class Picture:
    """A figure that was drawn, by its file name in the folder of the report."""

    file: str
    caption: str


@dataclass
class Section:
    """Everything found about one part of a run."""

    title: str
    checks: list[Check] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)  # everything measured, as plain values


def number(value: Any) -> str:
    """A value for a table: small and large ones with an exponent, a dash for what is not known."""
    if value is None:
        return "-"
    if isinstance(value, bool | str | int):
        return str(value)
    if math.isnan(value):
        return "-"
    if value and abs(value) < 1e-3:
        return f"{value:.2e}"
    return show(value)
