"""`marlab hunt museum [EXHIBIT ...]`: faults of the original, brought back on purpose, each with its tell-tale plot.

Every exhibit runs in minutes on one core: the fault beside its cure, a figure that shows the difference, and whether
the expected sign appeared. It teaches what each failure looks like, and it is a regression test: a sign that no longer
appears means that the fault's switch or its cure has changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from marlab.hunt.data.collect import collect
from marlab.hunt.data.config import HuntCollectConfig
from marlab.lab.errors import UserError
from marlab.lab.report.markdown import code, image, plain, table
from marlab.lab.runs.files import write_json, write_text
from marlab.lab.runs.run import RunOptions


@dataclass(frozen=True)
class MuseumConfig:
    """Which exhibits to make, and how large."""

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
    out: Path = Path("runs/hunt/museum")
    """Folder of the museum."""
    device: str = "cpu"
    """Where to learn: cpu, cuda, cuda:N or auto."""

    def __post_init__(self) -> None:
        for name, least in (("rows", 500), ("epochs", 1), ("games", 8), ("iterations", 4)):
            if getattr(self, name) < least:
                raise UserError(f"{name} is {getattr(self, name)}, expected {least} or more.")
        for name in self.chosen:
            if name not in exhibits():
                raise UserError(f"'{name}' is not an exhibit, expected one of {', '.join(exhibits())}.")

    @property
    def chosen(self) -> tuple[str, ...]:
        named = tuple(dict.fromkeys([*([self.exhibit] if self.exhibit else []), *self.exhibits]))
        return named or tuple(exhibits())


@dataclass(frozen=True)
class Exhibit:
    """A fault, what gives it away, and how it is shown."""

    row: str  # number in the list of what the original got wrong
    title: str
    sign: str  # what to look for
    command: str  # how to bring the fault back by hand
    make: Callable[[Museum], Finding]


@dataclass(frozen=True)
class Finding:
    """What an exhibit showed."""

    said: str  # one or two sentences with the figures
    appeared: bool  # the expected sign is there, and the cure does not have it
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass
class Museum:
    """The house: its settings, its folder, and the data that exhibits share."""

    config: MuseumConfig
    name: str = ""  # of the exhibit that is being made
    quiet: bool = True
    healthy: Path | None = None  # run of the model that learnt without a fault
    _data: Path | None = None

    @property
    def picture(self) -> Path:
        """Where the exhibit's figure goes."""
        return self.config.out / f"{self.name}.png"

    @property
    def workshop(self) -> Path:
        """A folder for the runs of the exhibit; made anew every time."""
        return self.config.out / "runs" / self.name

    def data(self) -> Path:
        """Offline data, collected once."""
        if self._data is None:
            out = self.config.out / "runs" / "data"
            config = HuntCollectConfig(rows=self.config.rows, seed=self.config.seed)
            self._data = collect(config, RunOptions(output_dir=_fresh(out)), quiet=True).path
        return self._data

    def fresh(self, part: str) -> Path:
        """An empty run directory of the exhibit."""
        return _fresh(self.workshop / part)


def _fresh(path: Path) -> Path:
    """The museum's own folder, emptied: earlier runs of the same exhibit are replaced."""
    import shutil

    if path.exists():
        shutil.rmtree(path)
    return path


def exhibits() -> dict[str, Exhibit]:
    """All exhibits by name, in the order of a tour."""
    from marlab.hunt.museum import behaviour as museum_behaviour
    from marlab.hunt.museum import data as museum_data
    from marlab.hunt.museum import training as museum_rise

    return {
        "double-softmax": museum_data.DOUBLE_SOFTMAX,
        "post-exit-rows": museum_data.POST_EXIT_ROWS,
        "stale-actions": museum_data.STALE_ACTIONS,
        "successes-only": museum_data.SUCCESSES_ONLY,
        "unscaled-beta": museum_behaviour.UNSCALED_BETA,
        "rise-then-fall": museum_rise.RISE_THEN_FALL,
        "all-together": museum_rise.ALL_TOGETHER,
    }


def visit(config: MuseumConfig, *, quiet: bool = True) -> dict[str, Finding]:
    """Make the chosen exhibits, with museum.json and museum.md beside their figures."""
    config.out.mkdir(parents=True, exist_ok=True)
    museum, found, seconds = Museum(config, quiet=quiet), {}, {}
    for name in config.chosen:
        museum.name = name
        began = time.monotonic()
        found[name] = exhibits()[name].make(museum)
        seconds[name] = time.monotonic() - began
        if not quiet:
            print(f"{name} ({seconds[name]:.0f} s): {_verdict(found[name])}. {found[name].said}", flush=True)
    told = {
        name: {"row": exhibits()[name].row, "title": exhibits()[name].title, "appeared": finding.appeared,
               "said": finding.said, "seconds": round(seconds[name], 1), "figures": finding.figures}
        for name, finding in found.items()
    }  # fmt: skip
    write_json(config.out / "museum.json", told)
    write_text(config.out / "museum.md", _page(found))
    return found


def _verdict(finding: Finding) -> str:
    return "the sign appears" if finding.appeared else "the sign does NOT appear"


def _page(found: dict[str, Finding]) -> str:
    rows = [[plain(name), exhibits()[name].row, plain(exhibits()[name].title), _verdict(finding)] for name, finding in
            found.items()]  # fmt: skip
    parts = ["# Failure museum", table(["exhibit", "fault", "what it is", "verdict"], rows)]
    for name, finding in found.items():
        one = exhibits()[name]
        parts += [f"## {plain(one.title)} ({one.row})", f"**Look for:** {plain(one.sign)}",
                  image(one.title, f"{name}.png"), plain(finding.said), f"By hand: {code(one.command)}"]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def main(argv: Sequence[str]) -> int:
    """`marlab hunt museum [EXHIBIT ...]`: 0 if every sign appeared, 1 if one did not."""
    from marlab.lab.flags import parse

    config = parse(MuseumConfig, argv, prog="marlab hunt museum", positional=("exhibit", "exhibits..."))
    found = visit(config, quiet=False)
    print(f"museum: {config.out / 'museum.md'}")
    return 0 if all(finding.appeared for finding in found.values()) else 1
