"""`marlab hunt compare RUN ...`: trainings side by side in one figure, beside the lab note's curves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from marlab.hunt.diagnose.curves import (
    LEVEL_HEADER,
    Training,
    draw_trainings,
    joined,
    level_rows,
    open_training,
)
from marlab.hunt.diagnose.parts import number
from marlab.lab.errors import UserError
from marlab.lab.runs.files import write_json
from marlab.lab.runs.records import find_run


@dataclass(frozen=True)
class CompareConfig:
    """Which trainings to draw."""

    runs: tuple[str, ...] = ()
    """Runs of `hunt train`: paths or names; NAME=RUN names one in the figure, and runs of one name are joined to one
    line with the seeds of all."""
    out: Path = Path("runs/hunt/compare")
    """Folder of trainings.png and trainings.json."""
    smooth: int = 1
    """Draw moving means of so many iterations."""

    def __post_init__(self) -> None:
        if not self.runs:
            raise UserError("Say which trainings to compare: `marlab hunt compare RUN ...`.")
        if self.smooth < 1:
            raise UserError(f"smooth is {self.smooth}, expected 1 or more.")


def compare(config: CompareConfig) -> list[Training]:
    """Draw the trainings and write where each came to; returns them as drawn."""
    trainings = joined(open_named(config.runs))
    config.out.mkdir(parents=True, exist_ok=True)
    draw_trainings(trainings, config.out / "trainings.png", smooth=config.smooth)
    write_json(config.out / "trainings.json", [dict(zip(LEVEL_HEADER, row)) for row in level_rows(trainings)])
    return trainings


def open_named(runs: Sequence[str]) -> list[Training]:
    """Open runs given as RUN or NAME=RUN; a run without a name is called by its variant, if that tells it apart."""
    given = [(name, run) if equals else ("", name) for name, equals, run in (text.partition("=") for text in runs)]
    opened = [(name, open_training(info.path, info.path.name)) for name, info in ((n, find_run(r)) for n, r in given)]
    often = Counter(training.variant for name, training in opened if not name)
    return [replace(t, name=name or (t.title if often[t.variant] == 1 else t.name)) for name, t in opened]


def main(argv: Sequence[str]) -> int:
    """`marlab hunt compare RUN ...`"""
    from marlab.lab.flags import parse

    config = parse(CompareConfig, argv, prog="marlab hunt compare", positional=("runs...",))
    rows = [LEVEL_HEADER, *(tuple(number(cell) for cell in row) for row in level_rows(compare(config)))]
    wide = [max(len(row[i]) for row in rows) for i in range(len(LEVEL_HEADER))]
    for row in rows:
        print("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, wide))))
    print(f"figure: {config.out / 'trainings.png'}")
    return 0
