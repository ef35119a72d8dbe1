"""A visit to the museum: the chosen exhibits are made one after the other, each kept as soon as it is done."""

from __future__ import annotations

import importlib
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from marlab.hunt.data.collect import collect
from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.museum.command import EXHIBITS, FINDINGS, MuseumConfig
from marlab.hunt.others.config import PretrainGoalsConfig
from marlab.hunt.others.pretrain import pretrain_goals
from marlab.lab.config import Preset
from marlab.lab.errors import UserError
from marlab.lab.report.markdown import code, image, plain, table
from marlab.lab.runs.files import plain_json, read_json, write_json, write_text
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import Run, RunOptions


@dataclass(frozen=True)
class Exhibit:
    """A fault, what gives it away, and how it is shown."""

    title: str
    sign: str  # what to look for
    command: str  # how to bring the fault back by hand
    make: Callable[[Museum], Finding]


@dataclass(frozen=True)
class Finding:
    """What an exhibit showed."""

    summary: str  # one or two sentences with the figures
    appeared: bool  # the expected sign is there, and the cure does not have it
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass
class Museum:
    """The house: its settings, its run, and the data that exhibits share."""

    config: MuseumConfig
    run: Run
    name: str = ""  # of the exhibit that is being made
    quiet: bool = True
    healthy: Path | None = None  # run of the model that learnt without a fault

    @property
    def picture(self) -> Path:
        """Where the exhibit's figure goes."""
        return self.run.figure(f"{self.name}.png")

    def data(self) -> Path:
        """Offline data, collected once."""
        out = self.run.path / "runs" / "data"
        if not ((out / "run.json").exists() and read_run(out).status == "finished"):
            config = HuntCollectConfig(rows=self.config.rows, seed=self.config.seed)
            collect(config, RunOptions(output_dir=_emptied(out)), quiet=True)
        return self._finished(out)

    def pretrained(self, part: str, config: PretrainGoalsConfig) -> Path:
        """Models of others, trained anew for the exhibit."""
        out = _emptied(self.run.path / "runs" / self.name / part)
        pretrain_goals(config, RunOptions(output_dir=out), quiet=True)
        return self._finished(out)

    def _finished(self, path: Path) -> Path:
        """A run that was stopped on the way stops the visit too."""
        if read_run(path).status != "finished":
            self.run.leave()
        return path


def _emptied(path: Path) -> Path:
    """A folder of the museum's own; what a killed visit left there is replaced."""
    if path.exists():
        shutil.rmtree(path)
    return path


def exhibit(name: str) -> Exhibit:
    module, _, attribute = EXHIBITS[name].partition(":")
    made: Exhibit = getattr(importlib.import_module(module), attribute)
    return made


def visit(
    config: MuseumConfig, options: RunOptions | None = None, *, preset: Preset | None = None,
    command: Sequence[str] | None = None, quiet: bool = False,
) -> Run:  # fmt: skip
    """Make the chosen exhibits that are not made yet; museum.json and museum.md say what they showed."""
    with Run.open("hunt", config, options, preset=preset, command=command) as run:
        findings: dict[str, Any] = {}
        if (run.path / FINDINGS).exists():
            findings = read_json(run.path / FINDINGS, lambda why: UserError(f"The museum cannot go on: {why}."))
        museum = Museum(config, run, quiet=quiet)
        for museum.name in (name for name in config.chosen if name not in findings):
            began = time.monotonic()
            finding = exhibit(museum.name).make(museum)
            seconds = round(time.monotonic() - began, 1)
            title = exhibit(museum.name).title
            findings[museum.name] = {"title": title, "seconds": seconds, **plain_json(asdict(finding))}
            write_json(run.path / FINDINGS, findings)
            if not quiet:
                print(f"{museum.name} ({seconds:.0f} s): {_verdict(finding.appeared)}. {finding.summary}", flush=True)
            if run.should_stop() and len(findings) < len(config.chosen):
                run.leave()
        write_text(run.path / "museum.md", _page(findings))
        run.add_results({name: _verdict(finding["appeared"]) for name, finding in findings.items()})
    return run


def _verdict(appeared: bool) -> str:
    return "the sign appears" if appeared else "the sign does NOT appear"


def _page(findings: dict[str, Any]) -> str:
    rows = [[plain(name), plain(finding["title"]), _verdict(finding["appeared"])] for name, finding in findings.items()]
    parts = ["# Failure museum", table(["exhibit", "what it is", "verdict"], rows)]
    for name, finding in findings.items():
        shown = exhibit(name)
        parts += [f"## {plain(shown.title)}", f"**Look for:** {plain(shown.sign)}",
                  image(shown.title, f"figures/{name}.png"), plain(finding["summary"]),
                  f"By hand: {code(shown.command)}"]  # fmt: skip
    return "\n\n".join(parts) + "\n"
