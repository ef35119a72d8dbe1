"""`marlab hunt compare RUN ...`: what `marlab compare` says of trainings, beside the original's published curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from marlab.lab.errors import UserError
from marlab.lab.flags import parse
from marlab.lab.runs.files import write_json

if TYPE_CHECKING:
    from marlab.hunt.diagnose.curves import Training


@dataclass(frozen=True)
class CompareConfig:
    """Which trainings to draw."""

    runs: tuple[str, ...] = ()
    """Runs of `hunt train`: paths or names; NAME=RUN names one in the figure, and runs of one name are joined to one
    line with the seeds of all."""
    output_dir: Path = Path("runs/hunt/compare")
    """Folder of trainings.png, trainings.json and, of several trainings, the comparison of `marlab compare`."""
    smooth: int = 1
    """Draw moving means of so many iterations."""

    def __post_init__(self) -> None:
        if not self.runs:
            raise UserError("Say which trainings to compare: `marlab hunt compare RUN ...`.")
        if self.smooth < 1:
            raise UserError(f"smooth is {self.smooth}, expected 1 or more.")


def compare(config: CompareConfig) -> list[Training]:
    """Draw the trainings and write where each came to; returns them as drawn."""
    from marlab.hunt.diagnose.curves import LEVEL_HEADER, draw_trainings, joined, level_rows, open_named

    trainings = joined(open_named(config.runs))
    draw_trainings(trainings, config.output_dir / "trainings.png", smooth=config.smooth)
    write_json(config.output_dir / "trainings.json", [dict(zip(LEVEL_HEADER, row)) for row in level_rows(trainings)])
    return trainings


def judge(config: CompareConfig) -> list[str]:
    """What the rewards at the end of the trainings are worth, in sentences; nothing of a single run."""
    from marlab.hunt.players.episodes import REWARD
    from marlab.lab.compare import command, show

    if len(set(config.runs)) < 2:
        return []
    asked = command.CompareConfig(config.runs, metric=REWARD, better="higher", output_dir=config.output_dir)
    return show.sentences(command.compare(asked))


def main(argv: Sequence[str]) -> int:
    """`marlab hunt compare RUN ...`"""
    config = parse(CompareConfig, argv, prog="marlab hunt compare", positional=("runs...",))
    from marlab.hunt.diagnose.curves import LEVEL_HEADER, level_rows
    from marlab.hunt.diagnose.parts import number

    rows = [LEVEL_HEADER, *(tuple(number(cell) for cell in row) for row in level_rows(compare(config)))]
    wide = [max(len(row[i]) for row in rows) for i in range(len(LEVEL_HEADER))]
    for row in rows:
        print("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, wide))))
    print("\n".join([*judge(config), f"figure: {config.output_dir / 'trainings.png'}"]))
    return 0
