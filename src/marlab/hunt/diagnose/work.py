"""The work of `marlab hunt diagnose`: open the runs, measure every module, judge it, write the report."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.data.dataset import Dataset, load_dataset
from marlab.hunt.diagnose.checks import Check, Picture, Section, Table, Verdict, diagnose_data, number, verdicts
from marlab.hunt.diagnose.config import DiagnoseConfig
from marlab.hunt.diagnose.opponents import (
    OpponentRun,
    diagnose_opponents,
    diagnose_transfer,
    draw_opponents,
    open_opponent_run,
)
from marlab.hunt.diagnose.ppo import PPORun, diagnose_ppo, open_ppo_run
from marlab.hunt.diagnose.selfplay import (
    LEVEL_HEADER,
    Training,
    diagnose_training,
    draw_trainings,
    level_rows,
    open_training,
)
from marlab.hunt.diagnose.world import WorldRun, diagnose_world, open_world_run
from marlab.hunt.others.config import PretrainGoalsConfig
from marlab.hunt.ppo.config import PPOTrainConfig
from marlab.hunt.selfplay.config import HopTrainConfig
from marlab.hunt.selfplay.gates import Gates
from marlab.hunt.world_model.config import PretrainWorldConfig
from marlab.lab.config import to_dict
from marlab.lab.errors import UserError
from marlab.lab.progress import Progress, stage
from marlab.lab.report.markdown import bullets, code, image, plain, table
from marlab.lab.runs.files import plain_json, write_json, write_text
from marlab.lab.runs.records import RunInfo, find_run
from marlab.lab.runs.run import Run
from marlab.lab.runs.stopping import Stopping
from marlab.lab.verdict import Sentence, say

FOLDER = "diagnose"
COMMANDS = "`hunt collect`, `hunt pretrain vae`, `hunt pretrain world` or `hunt train`"


@dataclass(frozen=True)
class Report:
    """What was found."""

    out: Path
    runs: tuple[Path, ...]
    sections: list[Section]
    verdicts: list[Verdict]
    left: int = 0
    """Parts that were not measured because somebody stopped it, or the time was up."""
    measured: int = 0
    """Parts that were."""

    @property
    def checks(self) -> list[Check]:
        return [check for section in self.sections for check in section.checks]

    def status(self, module: str) -> str | None:
        """The worst verdict on a module over all runs, or None if no run has it."""
        given = {v.status for v in self.verdicts if v.module == module}
        return next((s for s in ("fail", "blocked", "pass") if s in given), None)


@dataclass
class _Opened:
    """The runs of a diagnosis by kind, and the data they rest on."""

    data: dict[Path, Dataset] = field(default_factory=dict)
    after_exit: dict[Path, float] = field(default_factory=dict)  # share that models learnt from, per data set
    opponents: list[OpponentRun] = field(default_factory=list)
    worlds: list[WorldRun] = field(default_factory=list)
    ppo: list[PPORun] = field(default_factory=list)
    planners: list[Training] = field(default_factory=list)

    def add_data(self, dataset: Dataset, after_exit: float = 0.0) -> None:
        where = dataset.path.resolve()
        self.data[where] = dataset
        self.after_exit[where] = max(after_exit, self.after_exit.get(where, 0.0))


def diagnose_runs(*runs: str | Path | Run, **settings: Any) -> Report:
    """`diagnose` for runs by their names, directories or objects; `settings` are fields of `DiagnoseConfig`."""
    return diagnose(DiagnoseConfig(runs=tuple(str(r.path if isinstance(r, Run) else r) for r in runs), **settings))


def diagnose(config: DiagnoseConfig, stopping: Stopping | None = None, *, quiet: bool = True) -> Report:
    """Measure everything that the runs allow, judge it, and write report.json, report.md and pictures."""
    stopping, gates = stopping or Stopping(), config.read_gates()
    infos = [find_run(name) for name in config.all_runs]
    with stage("opening the runs", quiet=quiet):
        opened = _open_all(infos, config.data)
    out = config.output_dir or infos[0].path / FOLDER
    out.mkdir(parents=True, exist_ok=True)
    sections: list[Section] = []
    parts, done = _parts(opened, config, gates, out), 0
    with Progress("diagnosis", total=len(parts), unit="parts", quiet=quiet) as bar:
        for name, measure in parts:
            bar.show(part=name)
            if done and stopping.should_stop():
                break
            sections += measure()
            done += 1
            bar.advance(1)
    found = verdicts([check for section in sections for check in section.checks])
    report = Report(out, tuple(info.path for info in infos), sections, found, len(parts) - done, done)
    write_json(out / "report.json", plain_json(as_dict(report, gates)))
    write_text(out / "report.md", as_markdown(report))
    return report


Part = tuple[str, Callable[[], list[Section]]]


def _parts(opened: _Opened, config: DiagnoseConfig, gates: Gates, out: Path) -> list[Part]:
    """What is to be measured, by name, in the order of the report."""
    pictures = out if config.figures else None

    def data(where: Path) -> list[Section]:
        return [diagnose_data(opened.data[where], opened.after_exit[where], gates, pictures, _name(where))]

    def opponents(run: OpponentRun) -> list[Section]:
        section = diagnose_opponents(run, gates, config.belief_games)
        diagnose_transfer(run, opened.ppo, config.episodes // 2, section)
        if config.figures:
            draw_opponents(run, section, out)
        return [section]

    def judged(measure: Callable[..., Section], run: WorldRun | PPORun) -> list[Section]:
        return [measure(run, gates, pictures)]

    parts: list[Part] = [(f"data {_name(where)}", partial(data, where)) for where in opened.data]
    parts += [(f"models of others {run.name}", partial(opponents, run)) for run in opened.opponents]
    parts += [(f"world model {run.name}", partial(judged, diagnose_world, run)) for run in opened.worlds]
    parts += [(f"PPO {run.name}", partial(judged, diagnose_ppo, run)) for run in opened.ppo]
    parts += [(f"planning {run.name}", partial(diagnose_training, run, gates, pictures)) for run in opened.planners]
    if opened.planners and config.figures:
        parts.append(("trainings side by side", lambda: [_trainings(opened, out)]))
    return parts


def verdict_of(report: Report) -> list[Sentence]:
    """Which module to look at first, or that none needs it."""
    wrong = [v for v in report.verdicts if v.status != "pass"]
    found = say("hunt.healthy", count=len(report.verdicts))
    if wrong:
        first = next((v for v in wrong if v.status == "fail"), wrong[0])
        found = say("hunt.at_fault", failed=len(wrong), count=len(report.verdicts), module=first.module, why=first.why)
    cut = [say("hunt.diagnosis_cut", left=report.left, count=report.left + report.measured)] if report.left else []
    return [found, *cut, say("hunt.next_diagnosis")]


def _trainings(opened: _Opened, out: Path) -> Section:
    """All trainings of a diagnosis in one figure, game by game."""
    section = Section("Trainings side by side")
    trainings = [open_training(run.path, run.name) for run in opened.ppo] + opened.planners
    for place, game in enumerate(dict.fromkeys(training.game for training in trainings)):
        shown = [training for training in trainings if training.game == game]
        file = "trainings.png" if place == 0 else f"trainings-{place + 1}.png"
        draw_trainings(shown, out / file)
        section.pictures.append(Picture(file, "Mean reward over training, beside that of the original"))
        section.tables.append(Table("Where trainings came to", LEVEL_HEADER, level_rows(shown)))
    return section


def _open_all(infos: Sequence[RunInfo], data: Path | None) -> _Opened:
    opened = _Opened()
    for info in infos:
        name = _name(info.path)
        if info.kind == HuntCollectConfig.KIND:
            opened.add_data(load_dataset(info.path))
        elif info.kind == PretrainGoalsConfig.KIND:
            opened.opponents.append(run := open_opponent_run(info.path, name, data))
            opened.add_data(run.dataset, run.learnt_after_exit)
        elif info.kind == PretrainWorldConfig.KIND:
            opened.worlds.append(world := open_world_run(info.path, name, data))
            opened.add_data(world.dataset)
        elif info.kind == PPOTrainConfig.KIND:
            opened.ppo.append(open_ppo_run(info.path, name))
        elif info.kind == HopTrainConfig.KIND:
            opened.planners.append(open_training(info.path, name))
        else:
            kind = info.kind or "unknown"
            raise UserError(f"{info.path} cannot be diagnosed ({kind}), expected a run of {COMMANDS}.")
    return opened


def _name(path: Path) -> str:
    """A run's name for tables and file names; the folder of its data set has the run's name too."""
    run = path.parent if path.name == "data" and (path.parent / "run.json").exists() else path
    return re.sub(r"[^\w.-]+", "-", run.resolve().name)


# --- the report -----------------------------------------------------------------------------------------------------


def as_dict(report: Report, gates: Gates) -> dict[str, Any]:
    """Everything as plain values."""
    found = [
        {"module": v.module, "run": v.decided_by.run, "status": v.status, "decided_by": v.decided_by.name,
         "value": v.decided_by.value, "gate": v.decided_by.gate, "sense": v.decided_by.sense,
         "original": v.decided_by.original, "because": list(v.because)}
        for v in report.verdicts
    ]  # fmt: skip
    sections = [{name: value for name, value in to_dict(s).items() if name != "checks"} for s in report.sections]
    return {
        "runs": [str(path) for path in report.runs],
        "verdicts": found,
        "checks": [{**to_dict(check), "met": check.met} for check in report.checks],
        "gates": to_dict(gates),
        "sections": sections,
    }


VERDICT_HEADER = ("module", "run", "verdict", "the figure that decides")
CHECK_HEADER = ("module", "run", "check", "value", "gate", "met", "original")


def as_markdown(report: Report) -> str:
    """The report as a page."""
    verdict_rows = [[plain(cell) for cell in row] for row in _verdict_rows(report)]
    checks = [
        (c.module, c.run, c.name, number(c.value), f"{c.sense} {number(c.gate)}", "yes" if c.met else "no",
         number(c.original))
        for c in report.checks
    ]  # fmt: skip
    parts = ["# Diagnosis", "Runs: " + ", ".join(code(str(path)) for path in report.runs), "## Verdicts"]
    parts += [
        table(VERDICT_HEADER, verdict_rows),
        "*fail*: the module misses a gate and everything it rests on holds. *blocked*: it misses a gate, but so does "
        "something before it; look there first.",
        "## All checks",
        table(CHECK_HEADER, [[plain(cell) for cell in row] for row in checks]),
    ]
    for section in report.sections:
        parts.append(f"## {plain(section.title)}")
        if section.remarks:
            parts.append(bullets(plain(remark) for remark in section.remarks))
        parts += [f"{image(p.caption, p.file)}\n\n*{plain(p.caption)}*" for p in section.pictures]
        for shown in section.tables:
            rows = [[plain(number(cell)) for cell in row] for row in shown.rows]
            parts += [f"### {plain(shown.title)}", table([plain(h) for h in shown.header], rows)]
    return "\n\n".join(parts) + "\n"


def _verdict_rows(report: Report) -> list[tuple[str, ...]]:
    return [(v.module, v.decided_by.run, v.status, v.why) for v in report.verdicts]


def as_text(report: Report) -> str:
    """The verdicts as a table for a terminal."""
    rows = [VERDICT_HEADER, *_verdict_rows(report)]
    wide = [max(len(row[i]) for row in rows) for i in range(3)]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, wide)) + "  " + row[3] for row in rows)
