"""`marlab hunt diagnose RUN`: which module is at fault? Figures, tables and a verdict per module.

RUN may come from `hunt collect`, `hunt pretrain vae`, `hunt pretrain world` or `hunt train`; several runs together
get their verdicts together, and a model of others is then also tried on the players of a PPO run.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from marlab.hunt.selfplay.gates import Gates
from marlab.lab.checks import at_least
from marlab.lab.config import from_dict
from marlab.lab.errors import UserError
from marlab.lab.flags import parse
from marlab.lab.progress import stage
from marlab.lab.runs.stopping import Stopping, check_time_limit


@dataclass(frozen=True)
class DiagnoseConfig:
    """What to diagnose."""

    COMMON: ClassVar = ("data", "output_dir", "figures", "episodes", "belief_games", "time_limit")
    run: str = ""
    """A run of `hunt collect`, `hunt pretrain vae`, `hunt pretrain world` or `hunt train`: its path or name."""
    runs: tuple[str, ...] = ()
    """More runs, so that all modules are judged together."""
    data: Path | None = None
    """Data set to judge models on, instead of the one they were trained on."""
    output_dir: Path | None = None
    """Folder for the report; by default `diagnose` in the first run's directory."""
    figures: bool = True
    """Draw pictures, not only tables."""
    episodes: int = 1000
    """Twice the fresh games in which it is tried how far models of others carry."""
    belief_games: int = 64
    """Games for beliefs where the run has not measured them; 0 leaves beliefs out."""
    time_limit: float | None = None
    """End within this many minutes; the report then has what was measured until then."""
    gates: Path | None = None
    """TOML file of what modules must reach, instead of the usual gates (`marlab.hunt.selfplay.gates`)."""

    def __post_init__(self) -> None:
        check_time_limit(self.time_limit)
        at_least(self, 2, "episodes")
        at_least(self, 0, "belief_games")

    def read_gates(self) -> Gates:
        if self.gates is None:
            return Gates()
        try:
            found = tomllib.loads(self.gates.read_text())
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise UserError(f"The gates {self.gates} cannot be read: {error}.") from None
        return from_dict(Gates, found, f"the gates {self.gates}")

    @property
    def all_runs(self) -> tuple[str, ...]:
        named = tuple(dict.fromkeys([*([self.run] if self.run else []), *self.runs]))
        if not named:
            raise UserError("Say which run to diagnose: `marlab hunt diagnose RUN`.")
        return named


def main(argv: Sequence[str]) -> int:
    """`marlab hunt diagnose RUN ...`"""
    config = parse(DiagnoseConfig, argv, prog="marlab hunt diagnose", positional=("run", "runs..."))
    with stage("starting"):  # torch takes its time
        from marlab.hunt.diagnose.work import as_text, diagnose, verdict_of
        from marlab.lab.verdict import texts

    with Stopping(config.time_limit) as stopping:
        report = diagnose(config, stopping, quiet=False)
    print(as_text(report))
    for section in report.sections:
        for remark in section.remarks:
            print(f"{section.title}: {remark}")
    print("\n".join(texts(verdict_of(report), str(report.out))))
    print(f"report: {report.out / 'report.md'}")
    return stopping.exit_code
