"""How a sweep ends: a comparison of what was trained, its results and verdict. `marlab draw` ends it once more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marlab.lab.compare.compare import Comparison, compare_groups
from marlab.lab.compare.groups import Group, open_groups
from marlab.lab.compare.show import difference_sentence, how_sentence, page, text
from marlab.lab.errors import UserError
from marlab.lab.report import markdown
from marlab.lab.runs.files import read_table, write_json, write_text
from marlab.lab.runs.judged import Better, Judged
from marlab.lab.runs.run import Run
from marlab.lab.stats import show
from marlab.lab.sweep.config import SweepConfig
from marlab.lab.sweep.halving import FEWEST, Rung, decide_between
from marlab.lab.sweep.plan import Plan, Trial, trial_path
from marlab.lab.sweep.trial import is_done, record_of
from marlab.lab.verdict import Sentence

PLAN, COMPARISON = "plan.json", "comparison.json"


@dataclass(frozen=True)
class Trained:
    """What a sweep wanted, and where its trainings lie."""

    folder: Path
    plan: Plan
    failed: Mapping[str, str]  # trial -> why

    def finished(self) -> list[str]:
        """Settings all of whose trainings came to their end."""
        return [name for name in self.plan.trials if all(is_done(path, None) for path in self.paths(name))]

    def paths(self, setting: str) -> list[Path]:
        return [trial_path(self.folder, trial) for trial in self.plan.trials[setting]]

    def paths_of(self, settings: Sequence[str]) -> list[str]:
        """Run directories of all settings none of whose trainings failed."""
        whole = [name for name in settings if not any(t.name in self.failed for t in self.plan.trials[name])]
        return [str(path) for name in whole for path in self.paths(name)]


def plan_table(plan: Plan) -> dict[str, Any]:
    """A plan as its file holds it."""
    settings = [
        {"setting": name, "values": dict(trials[0].values), "trials": [trial.name for trial in trials]}
        for name, trials in plan.trials.items()
    ]
    return {"default": plan.default, "settings": settings}


def conclude(
    run: Run, trained: Trained, config: SweepConfig, finalists: Sequence[str], rungs: Sequence[Rung], quiet: bool
) -> None:
    """The comparison of what was trained to its end, as table, figure, results and verdict of the sweep."""
    paths = trained.paths_of(finalists)
    if len(paths) < 2:
        why = next(iter(trained.failed.values()), "they were dropped at a rung")
        raise UserError(f"Nothing can be compared: of the others a training failed ({why}).")
    groups = open_groups(paths)
    default = _group_of(groups, trained)
    found = compare_groups(groups, config.metric, config.better, default)
    if default is None:  # without a default the best one is what others are measured by
        found = compare_groups(groups, config.metric, config.better, found.best)
    _write(run, found, groups, rungs, trained.failed)
    said = verdict(found, default)
    run.judge_by(Judged((found.measure.title,), None, found.measure.better or "higher"))
    best = found.row(found.best)
    result = {"value": best.mean.value, "low": best.mean.low, "high": best.mean.high, "unit": found.measure.unit}
    run.add_results({
        found.measure.title: {**result, "note": f"of the best setting, {found.best}"}, "best setting": found.best,
        "settings": len(trained.plan.trials), "trainings": len(trained.plan.all_trials),
        "trainings failed": len(trained.failed),
    })  # fmt: skip
    run.set_verdict(*said)
    if not quiet:
        print(text(found, words=False))


def _group_of(groups: Sequence[Group], trained: Trained) -> str | None:
    """The name of the group that holds the trials of the default setting."""
    if trained.plan.default is None:
        return None
    names = {trial.name for trial in trained.plan.trials[trained.plan.default]}
    return next((group.name for group in groups if {info.path.name for info in group.runs} & names), None)


def verdict(found: Comparison, default: str | None) -> list[Sentence]:
    """The best setting against the second, against the default, and how sure that is."""
    if found.second is None or found.runner_up is None:
        return []
    second = found.second
    told = [difference_sentence(found, found.best, found.runner_up, second, second.outcome(found.measure.better))]
    best = found.row(found.best)
    if default not in (None, found.best, found.runner_up) and best.difference is not None and best.outcome is not None:
        told.append(difference_sentence(found, found.best, found.against, best.difference, best.outcome))
    return [*told, how_sentence(second, second.outcome(found.measure.better))]


def _write(
    run: Run, found: Comparison, groups: Sequence[Group], rungs: Sequence[Rung], failed: Mapping[str, str]
) -> None:
    from marlab.lab.compare.figure import draw

    figure = draw(found, groups, run.figure("comparison.png"))
    halving = [{"step": r.step, "metric": r.metric, "scores": dict(r.scores), "kept": r.kept} for r in rungs]
    write_json(run.path / COMPARISON, {**found.as_json(), "rungs": halving, "failed": dict(failed)})
    parts = [page(found, figure.relative_to(run.path).as_posix()).rstrip()]
    for rung in rungs:
        rows = [[name, show(score), "goes on" if name in rung.kept else ""] for name, score in rung.scores.items()]
        plain = [[markdown.plain(cell) for cell in row] for row in rows]
        parts += [f"## Rung {rung.step}", markdown.table(["setting", rung.metric, ""], plain)]
    if failed:
        rows = [[markdown.plain(cell) for cell in item] for item in failed.items()]
        parts += ["## Trainings that failed", markdown.table(["training", "why"], rows)]
    write_text(run.path / "comparison.md", "\n\n".join(parts) + "\n")


# --- again, from what is on the disk ---------------------------------------------------------------------------------


def draw_again(run: Run, config: SweepConfig, quiet: bool) -> None:
    """The end of a sweep once more: rungs are decided again from the metrics, and what is finished is compared."""
    plan = _stored_plan(run.path)
    trained = Trained(run.path, plan, _failed(run.path, plan))
    rungs = _rungs_again(trained, config)
    whole = [name for name in trained.finished() if not rungs or name in rungs[-1].kept]
    if len(trained.paths_of(whole)) < 2:
        raise UserError(f"Of the trainings of {run.path} fewer than two are finished: go on with --resume first.")
    conclude(run, trained, config, whole, rungs, quiet)


def _stored_plan(folder: Path) -> Plan:
    """The plan of a sweep as its file tells it; names that are no folder of the sweep's own trials are refused."""
    stored = read_table(folder / PLAN, lambda why: UserError(f"The sweep has nothing to draw yet: {why}."))
    trials = {
        str(row["setting"]): [Trial(name, str(row["setting"]), row["values"], None) for name in row["trials"]]
        for row in stored["settings"]
    }
    names = [trial.name for row in trials.values() for trial in row]
    if not all(isinstance(name, str) and Path(name).name == name and name != ".." for name in names):
        raise UserError(f"{folder / PLAN} names trainings outside the sweep.")
    default = stored["default"]
    return Plan(trials, default if default in trials else None)


def _failed(folder: Path, plan: Plan) -> dict[str, str]:
    """Which trainings failed and why: by their own records, and of those without one by the sweep's last table."""
    path = folder / COMPARISON
    told = read_table(path, lambda why: UserError(f"{why}.")).get("failed", {}) if path.exists() else {}
    failed = {}
    for trial in plan.all_trials:
        info = record_of(trial_path(folder, trial))
        if info is None and trial.name in told:
            failed[trial.name] = str(told[trial.name])
        elif info is not None and info.status == "failed":
            failed[trial.name] = str(told.get(trial.name) or info.reason or "failed")
    return failed


def _rungs_again(trained: Trained, config: SweepConfig) -> list[Rung]:
    """The decisions of successive halving, as far as the trainings came."""
    alive, rungs = list(trained.plan.trials), list[Rung]()
    for step in config.rungs:
        paths = {name: trained.paths(name) for name in alive}
        everything = [path for row in paths.values() for path in row]
        if len(alive) <= FEWEST or not all(is_done(path, step) for path in everything):
            break
        info = record_of(everything[0])
        judged = info.judged if info is not None else Judged()
        better: Better = config.better or judged.better
        rungs.append(decide_between(paths, step, config.halving or str(judged.metric), config.keep, better))
        alive = rungs[-1].kept
    return rungs
