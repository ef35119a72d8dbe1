"""What a diagnosis is made of: checks against gates, tables, pictures, and the verdict on every module; and the data.

A module that misses a gate is not always at fault: a belief cannot be right when the predictions it is computed from
are wrong. So a check names what it needs; a missed check is blamed on its module only if everything it needs holds.
Otherwise the module is *blocked*: look at the fault before it first.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from matplotlib.figure import Figure
from torch import Tensor

from marlab.hunt.data.collect import class_report
from marlab.hunt.data.dataset import Dataset, check_integrity
from marlab.hunt.game.rules import ACTION_NAMES
from marlab.hunt.players.published import CONFUSION, ROWS
from marlab.hunt.players.seats import Kind
from marlab.hunt.pretraining.floor import rule_rows
from marlab.hunt.pretraining.metrics import class_table
from marlab.hunt.selfplay.gates import Gates
from marlab.lab.errors import UserError
from marlab.lab.report.figures import bars
from marlab.lab.report.style import legend, panels, save
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


def run_pictures(run: Path, out: Path, name: str, captions: Mapping[str, str]) -> list[Picture]:
    """Figures that a run drew itself, copied into the folder of the report."""
    found = []
    for figure, caption in captions.items():
        drawn = run / "figures" / f"{figure}.png"
        if drawn.exists():
            shutil.copyfile(drawn, out / f"{figure}-{name}.png")
            found.append(Picture(f"{figure}-{name}.png", caption))
    return found


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


# --- the data -----------------------------------------------------------------------------------------------------


def diagnose_data(dataset: Dataset, learnt_after_exit: float, gates: Gates, out: Path | None, run: str) -> Section:
    """Does a data set agree with the game, and are its labels what players did? Pictures go to `out`.

    learnt_after_exit: share of rows of players who had left among those that models learnt from.
    """
    section = Section(f"Data {run}")
    integrity = check_integrity(dataset.game, dataset.rows)
    shares, wrong, classes = integrity.shares(), label_faults(dataset), class_report(dataset.rows)
    gone = max(learnt_after_exit, float((~dataset.rows.alive[:, 0]).float().mean()))
    section.checks = [
        Check("data", "replay equality", integrity.equality, gates.replay, "at least", run=run),
        Check("data", "true labels", 1.0 - wrong["any"], gates.labels, "at least", run=run),
        Check("data", "rows after exit", gone, gates.rows_after_exit, "at most", run=run),
    ]
    section.figures = {"replay": shares, "label_faults": wrong, "rows_after_exit": gone, "classes": classes}
    original = class_table(CONFUSION)
    rows: list[tuple[Any, ...]] = [
        (name, v["count"], v["share"], int(original.count[i]), float(original.ratio[i]))
        for i, (name, v) in enumerate(classes["actions"].items())
    ]
    rows.append(("L1 distance of shares", None, classes["l1_to_original"], None, None))
    causes = [(name, v["count"], v["share_of_rows"]) for name, v in classes["stay_causes"].items()]
    section.tables = [
        Table("Rows that a replay reproduces", ("field", "share"), [*shares.items()]),
        Table("Rows with a wrong label", ("fault", "share"), [*wrong.items()]),
        Table("Class distribution", ("action", "rows", "share", "rows (original)", "share (original)"), rows),
        Table("Why players stayed", ("cause", "rows", "share of all rows"), causes),
    ]
    if out is not None:
        figure, (ax,) = panels(size=(9.6, 4.4), title="Actions in the data")
        series = {
            f"ours, {classes['rows']:,} rows": [v["share"] for v in classes["actions"].values()],
            f"original, {ROWS:,} rows": original.ratio.tolist(),
        }
        bars(ax, [name.replace("_", " ") for name in ACTION_NAMES], series, ylabel="share of rows", digits=3)
        legend(figure)
        caption = "Class distribution of the data beside that of the original"
        section.pictures.append(save_picture(figure, out, f"actions-{run}.png", caption))
    return section


def label_faults(dataset: Dataset) -> dict[str, float]:
    """Shares of rows whose action is not in the joint action, is illegal, or is one that the player never takes."""
    rows, kinds = dataset.rows, (Kind.NS, Kind.NH, Kind.RAND)
    by_kind = rule_rows(dataset.game, rows, kinds)  # [R, 3, A]
    chance = by_kind.gather(2, rows.a.view(-1, 1, 1).expand(-1, len(kinds), 1)).squeeze(2)
    of_kind = torch.stack([rows.type == kind for kind in kinds], 1)
    faults: dict[str, Tensor] = {
        "not in the joint action": rows.a != rows.joint_a[:, 0],
        "illegal": ~rows.mask.gather(1, rows.a.unsqueeze(1)).squeeze(1),
        "never done by such a player": (of_kind & (chance == 0)).any(1),
    }
    faults["any"] = torch.stack([*faults.values()]).any(0)
    return {name: float(which.double().mean()) for name, which in faults.items()}
