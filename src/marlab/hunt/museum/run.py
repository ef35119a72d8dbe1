"""A visit to the museum: the chosen exhibits are made one after the other, each kept as soon as it is done."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from marlab.hunt.data.collect import collect
from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.museum.command import EXHIBITS, FINDINGS, MuseumConfig
from marlab.hunt.others.config import PretrainGoalsConfig
from marlab.hunt.pretraining.run import pretrain_goals
from marlab.lab.config import Preset
from marlab.lab.errors import UserError
from marlab.lab.progress import Progress
from marlab.lab.report.markdown import code, image, plain, table
from marlab.lab.runs.files import plain_json, read_json, write_json, write_text
from marlab.lab.runs.identity import code_identity
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.verdict import say

CODE = ("hunt", "lab/ppo", "lab/search", "lab/stats.py")
"""Exhibits play, learn and judge: nearly all of the hunt takes part."""


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
        if not finished(out):
            config = HuntCollectConfig(rows=self.config.rows, seed=self.config.seed)
            collect(config, going_on(out), quiet=self.quiet)
        return self.whole(out)

    def pretrained(self, part: str, config: PretrainGoalsConfig) -> Path:
        """Models of others of the exhibit; what was stopped goes on."""
        out = self.part(part)
        if not finished(out):
            pretrain_goals(config, going_on(out), quiet=self.quiet)
        return self.whole(out)

    def part(self, name: str) -> Path:
        """The folder of a run behind the exhibit."""
        return self.run.path / "runs" / self.name / name

    def whole(self, path: Path) -> Path:
        """A run that was stopped on the way stops the visit too."""
        if not finished(path):
            self.run.stop(read_run(path).reason)
            self.run.leave()
        return path

    def pause(self) -> None:
        """A safe point between two parts of an exhibit; what it has made so far is made again."""
        if self.run.should_stop():
            self.run.leave()


def finished(path: Path) -> bool:
    return (path / "run.json").exists() and read_run(path).status == "finished"


def going_on(path: Path) -> RunOptions:
    """Begin a run, or go on with what a stopped visit left of it."""
    return RunOptions(output_dir=path, resume=(path / "run.json").exists())


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
        code = code_identity(CODE)  # what other code showed is shown anew
        if (run.path / FINDINGS).exists():
            findings = read_json(run.path / FINDINGS, lambda why: UserError(f"The museum cannot go on: {why}."))
            findings = {name: finding for name, finding in findings.items() if finding.get("code") == code}
        museum = Museum(config, run, quiet=quiet)
        try:
            for museum.name in (name for name in config.chosen if name not in findings):
                began = time.monotonic()
                with Progress(museum.name, quiet=quiet):
                    finding = exhibit(museum.name).make(museum)
                seconds = round(time.monotonic() - began, 1)
                title = exhibit(museum.name).title
                made = {"title": title, "seconds": seconds, "code": code}
                findings[museum.name] = {**made, **plain_json(asdict(finding))}
                write_json(run.path / FINDINGS, findings)
                if not quiet:
                    sign = _verdict(finding.appeared)
                    print(f"{museum.name} ({seconds:.0f} s): {sign}. {finding.summary}", flush=True)
                if run.should_stop() and len(findings) < len(config.chosen):
                    run.leave()
        finally:
            conclude(run, findings, len(config.chosen))
    return run


def conclude(run: Run, findings: dict[str, Any], wanted: int) -> None:
    """The page, the results and the verdict of the exhibits that are made."""
    write_text(run.path / "museum.md", _page(findings))
    run.add_results({name: _verdict(finding["appeared"]) for name, finding in findings.items()})
    missing = [name for name, finding in findings.items() if not finding["appeared"]]
    signs = say("hunt.signs_appear", count=len(findings))
    if missing:
        signs = say("hunt.signs_missing", missing=len(missing), count=len(findings), names=", ".join(missing))
    if len(findings) == wanted:
        run.set_verdict(signs, say("hunt.next_museum"))
    else:
        cut = say("hunt.museum_cut", done=len(findings), count=wanted)
        run.set_verdict(*([signs] if findings else []), cut, say("lab.go_on"))


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
