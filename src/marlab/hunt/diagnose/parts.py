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

from matplotlib.figure import Figure

from marlab.lab.errors import UserError
from marlab.lab.report.style import save
from marlab.lab.stats import show

Module = Literal["data", "goal VAE", "MOA", "belief", "world model", "PPO", "planner", "self-play"]
MODULES: tuple[Module, ...] = get_args(Module)
Status = Literal["pass", "fail", "blocked"]


@dataclass(frozen=True)
class Check:
    """A figure against its gate."""

    module: Module
    name: str
    value: float | None  # None: it could not be measured
    gate: float
    sense: Literal["at least", "at most"]
    original: float | None = None  # what the original system had, where it was published
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
    given: list[Verdict] = []
    for module in MODULES:
        for run in dict.fromkeys(check.run for check in checks if check.module == module):
            judged = [check for check in checks if check.module == module and check.run == run]
            wrong = [check for check in judged if not check.met]
            blamed = [check for check in wrong if not _causes(check, missed)]
            if blamed:
                given.append(Verdict(module, "fail", blamed[0]))
            elif wrong:
                given.append(Verdict(module, "blocked", wrong[0], tuple(_causes(wrong[0], missed))))
            else:
                given.append(Verdict(module, "pass", judged[0]))
    return given


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


def save_picture(figure: Figure, out: Path, name: str, caption: str) -> Picture:
    """Write a figure into the folder of the report."""
    save(figure, out / name)
    return Picture(name, caption)


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
