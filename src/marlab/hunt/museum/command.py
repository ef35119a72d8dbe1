"""`marlab hunt museum [EXHIBIT ...]`: faults of the original, brought back on purpose, each with its tell-tale plot.

    runs/hunt/NAME/museum.md, museum.json, figures/EXHIBIT.png   what every exhibit shows
    runs/hunt/NAME/runs/                                          the data and trainings behind them

Every exhibit runs in minutes on one core: the fault beside its cure, a figure that shows the difference, and whether
the expected sign appeared. It teaches what each failure looks like, and it is a regression test: a sign that no longer
appears means that the fault's switch or its cure has changed. `--resume` makes the exhibits that are missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from marlab.lab.checks import at_least
from marlab.lab.command import RunCommand
from marlab.lab.errors import UserError
from marlab.lab.runs.files import read_json
from marlab.lab.runs.run import run_path

EXHIBITS = {
    "double-softmax": "marlab.hunt.museum.data:DOUBLE_SOFTMAX",
    "post-exit-rows": "marlab.hunt.museum.data:POST_EXIT_ROWS",
    "stale-actions": "marlab.hunt.museum.data:STALE_ACTIONS",
    "successes-only": "marlab.hunt.museum.data:SUCCESSES_ONLY",
    "unscaled-beta": "marlab.hunt.museum.behaviour:UNSCALED_BETA",
    "rise-then-fall": "marlab.hunt.museum.training:RISE_THEN_FALL",
    "all-together": "marlab.hunt.museum.training:ALL_TOGETHER",
}
"""All exhibits in the order of a tour, and where they are made."""
FINDINGS = "museum.json"


@dataclass(frozen=True)
class MuseumConfig:
    """Which exhibits to make, and how large."""

    KIND: ClassVar[str] = "hunt/museum"
    exhibit: str = ""
    """One exhibit; all of them by default."""
    exhibits: tuple[str, ...] = ()
    """More exhibits."""
    rows: int = 12_000
    """Offline rows that models learn from."""
    epochs: int = 6
    """Passes over them."""
    games: int = 1024
    """Games per point where behaviour is simulated."""
    iterations: int = 60
    """Iterations of the exhibits that learn by playing."""
    seed: int = 0
    """Seed of everything random."""
    device: str = "auto"
    """Where to learn: auto, cpu, cuda or cuda:N."""

    def __post_init__(self) -> None:
        at_least(self, 500, "rows")
        at_least(self, 1, "epochs")
        at_least(self, 8, "games")
        at_least(self, 4, "iterations")
        for name in self.chosen:
            if name not in EXHIBITS:
                raise UserError(f"'{name}' is not an exhibit, expected one of {', '.join(EXHIBITS)}.")

    @property
    def chosen(self) -> tuple[str, ...]:
        named = tuple(dict.fromkeys([*([self.exhibit] if self.exhibit else []), *self.exhibits]))
        return named or tuple(EXHIBITS)


COMMAND = RunCommand("hunt museum", MuseumConfig, "marlab.hunt.museum.run:visit", positional=("exhibit", "exhibits..."))


def main(argv: Sequence[str]) -> int:
    """`marlab hunt museum [EXHIBIT ...]`: 0 if every sign appeared, 1 if one did not."""
    parsed = COMMAND.parse(argv)
    code = COMMAND.start(parsed, argv)
    findings = run_path("hunt", parsed.config, parsed.options, parsed.preset) / FINDINGS
    if code or parsed.options.background or not findings.exists():
        return code
    return 0 if all(finding["appeared"] for finding in read_json(findings, UserError).values()) else 1
