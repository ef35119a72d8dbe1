"""`marlab compare RUN ...`: runs of any world side by side, and what the difference is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from marlab.lab.errors import UserError
from marlab.lab.flags import parse

if TYPE_CHECKING:
    from marlab.lab.compare.compare import Comparison
    from marlab.lab.compare.groups import Group


@dataclass(frozen=True)
class CompareConfig:
    """Compare runs: one table, every setting that differs, and which differences are more than noise. Runs that differ
    only in their seed are one group."""

    TITLE: ClassVar = "the comparison"
    runs: tuple[str, ...] = ()
    """Runs (paths, world/name or names) of one world, trainings or evaluations; a sweep stands for all its runs;
    NAME=RUN names a group, and runs of one name are one group."""
    metric: str | None = None
    """A result or metric by its name or the end of it; by default what the runs are judged by."""
    better: Literal["higher", "lower"] | None = None
    """Which way is better, where the runs do not say."""
    against: str | None = None
    """The group that the others are compared with; by default the first."""
    all: bool = False
    """Show all results that the runs share, not only the one they are compared by."""
    smooth: int = 1
    """Draw moving means of so many records over the curves."""
    output_dir: Path | None = None
    """Write comparison.md, comparison.json and comparison.png into this folder."""
    root: Path = Path("runs")
    """Folder of all runs."""

    def __post_init__(self) -> None:
        if self.smooth < 1:
            raise UserError(f"smooth is {self.smooth}, expected 1 or more.")
        if self.output_dir is not None and (self.output_dir / "run.json").exists():
            raise UserError(f"{self.output_dir} is a run; choose another folder for the comparison.")


def compare(config: CompareConfig) -> Comparison:
    """The comparison, written to the folder if there is one; `text` of `marlab.lab.compare.show` tells it."""
    from marlab.lab.compare.compare import compare_groups
    from marlab.lab.compare.groups import open_groups

    groups = open_groups(config.runs, config.root)
    found = compare_groups(groups, config.metric, config.better, config.against)
    if config.output_dir is not None:
        write(found, groups, config.output_dir, config.smooth)
    return found


def write(found: Comparison, groups: Sequence[Group], folder: Path, smooth: int = 1) -> None:
    """comparison.json, comparison.md and comparison.png."""
    from marlab.lab.compare.figure import draw
    from marlab.lab.compare.show import page
    from marlab.lab.runs.files import write_json, write_text

    figure = draw(found, groups, folder / "comparison.png", smooth)
    write_json(folder / "comparison.json", found.as_json())
    write_text(folder / "comparison.md", page(found, figure.name))


def main(argv: Sequence[str]) -> int:
    """`marlab compare RUN ...`"""
    config = parse(CompareConfig, argv, prog="marlab compare", positional=("runs...",))
    from marlab.lab.compare.show import text

    print(text(compare(config), config.all))
    if config.output_dir is not None:
        print(f"\nThe comparison is in {config.output_dir}: comparison.md, comparison.png, comparison.json.")
    return 0
