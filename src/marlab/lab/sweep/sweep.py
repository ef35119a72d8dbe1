"""The work of `marlab sweep`: trials on an engine, rungs, and at the end the one comparison of all worlds.

    runs/sweep/NAME/plan.json                    every setting and its trials
    runs/sweep/NAME/trials/TRIAL/                one ordinary run per setting and seed
    runs/sweep/NAME/comparison.md, .json, figures/comparison.png

Nothing else is kept about trials: whether one is done, its own record says, so that none is trained twice and none is
forgotten, whatever was killed in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from marlab.lab.compare.compare import Comparison, compare_groups
from marlab.lab.compare.groups import Group, open_groups
from marlab.lab.compare.show import difference_sentence, how_sentence, page, text
from marlab.lab.config import Preset
from marlab.lab.engine.tasks import EngineConfig, Task, TaskResult, run_tasks
from marlab.lab.errors import UserError
from marlab.lab.progress import Progress
from marlab.lab.report import markdown
from marlab.lab.runs.files import write_json, write_text
from marlab.lab.runs.judged import Better, Judged
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.stats import show
from marlab.lab.sweep.config import SweepCommand, SweepConfig
from marlab.lab.sweep.halving import Rung, decide, metric_named, score_at
from marlab.lab.sweep.plan import Plan, Training, Trial, make_plan, ready, trial_path
from marlab.lab.sweep.trial import is_done, run_trial
from marlab.lab.verdict import Sentence

SLOW_IMPORT = "torch.utils.tensorboard"
"""What every training imports with its first metrics."""


def sweep(
    training: Training, config: SweepConfig, options: RunOptions | None = None, *, preset: Preset | None = None,
    command: Sequence[str] | None = None, quiet: bool = False,
) -> Run:  # fmt: skip
    """Train whatever is missing of the plan, and compare; the run's `comparison.json` holds the table."""
    asked = SweepCommand.of(config)
    config, engine, quiet = asked.run_config(), asked.engine_config(), quiet or asked.quiet
    plan = make_plan(training, config)  # refuses wrong names and values before a folder is made
    if len(plan.all_trials) < 2:
        raise UserError("A sweep of one training has nothing to compare; give --set more values, or --seeds.")
    judged = _judged(training, plan)
    direction = _direction(config, judged)
    with Run.open("sweep", config, options, preset=preset, command=command) as run:
        write_json(run.path / "plan.json", _plan_table(plan))
        work = _Work(run, training, config, plan, engine, quiet)
        try:
            rungs = work.halve(judged, direction) if config.rungs else []
            finalists = rungs[-1].kept if rungs else list(plan.trials)
            work.train(finalists, None)
        except Stopped:
            whole = [name for name, trials in plan.trials.items() if all(work.is_finished(t) for t in trials)]
            if len(work.paths_of(whole)) > 1 and not run.signalled:
                _conclude(run, work, config, whole, [], quiet)
            run.leave()
        _conclude(run, work, config, finalists, rungs, quiet)
    return run


class Stopped(Exception):
    """A signal, or the time limit: what is finished by now is compared, and the rest can be resumed."""


def _judged(training: Training, plan: Plan) -> Judged:
    found: Judged = getattr(ready(training, plan.all_trials[0].all_values).config, "judged_by", Judged())
    return found


def _direction(config: SweepConfig, judged: Judged) -> Better:
    """Which way is better at a rung; refused before any work where nobody says it."""
    if not config.rungs:
        return config.better or judged.better
    if config.halving is None and judged.metric is None:
        raise UserError("This training does not say what it is judged by; name the metric with --halving.")
    known = config.halving is None or (judged.metric or "").endswith(config.halving)
    if config.better is None and not known:
        raise UserError(
            f"Is a higher or a lower {config.halving} better? Say it with --better higher or --better lower."
        )
    return config.better or judged.better


def _plan_table(plan: Plan) -> dict[str, Any]:
    settings = [
        {"setting": name, "values": dict(trials[0].values), "trials": [trial.name for trial in trials]}
        for name, trials in plan.trials.items()
    ]
    return {"default": plan.default, "settings": settings}


class _Work:
    """A sweep at work: what it trains, and what failed."""

    def __init__(
        self, run: Run, training: Training, config: SweepConfig, plan: Plan, engine: EngineConfig, quiet: bool
    ) -> None:
        self.run, self.training, self.config, self.plan = run, training, config, plan
        self.engine, self.quiet = engine, quiet
        self.failed: dict[str, str] = {}  # trial -> why
        commands = [ready(training, trials[0].all_values).command for trials in plan.trials.values()]
        self.imports = (*dict.fromkeys(command.work.partition(":")[0] for command in commands), SLOW_IMPORT)

    def halve(self, judged: Judged, better: Better) -> list[Rung]:
        """Rung after rung until the finalists are known."""
        alive, rungs = list(self.plan.trials), list[Rung]()
        for step in self.config.rungs:
            if len(alive) <= 2:
                break
            self.train(alive, step)
            paths = {name: [trial_path(self.run.path, t) for t in self.plan.trials[name]] for name in alive}
            asked = self.config.halving or str(judged.metric)
            metric = metric_named(asked, [path for row in paths.values() for path in row], step)
            values = {name: [score_at(path, metric, step) for path in row] for name, row in paths.items()}
            rungs.append(decide(step, metric, values, self.config.keep, better))
            alive = rungs[-1].kept
            told = f"rung {step}: {len(alive)} of {len(paths)} settings go on ({metric}): {'; '.join(alive)}"
            self._say(told)
        return rungs

    def train(self, settings: Sequence[str], rung: int | None) -> None:
        """Bring all trials of these settings to the rung (None: to their end); raises Stopped where it should stop."""
        trials = [trial for name in settings for trial in self.plan.trials[name]]
        todo = [trial for trial in trials if not is_done(trial_path(self.run.path, trial), rung)]
        if not todo:
            return
        label = f"{self.run.path.name}, rung {rung}" if rung is not None else self.run.path.name
        bar = Progress(label, total=len(trials), unit="trainings", done=len(trials) - len(todo), quiet=self.quiet)
        tasks, stop = self._tasks(todo, rung), self.run.must_stop
        with bar:
            for result in run_tasks(run_trial, tasks, self.engine, bar, stop=stop, imports=self.imports):
                self._keep(result)
        # whatever was ended on the way goes on from its last checkpoint
        if not all(t.name in self.failed or is_done(trial_path(self.run.path, t), rung) for t in todo):
            raise Stopped

    def is_finished(self, trial: Trial) -> bool:
        return is_done(trial_path(self.run.path, trial), None)

    def _tasks(self, todo: Sequence[Trial], rung: int | None) -> Iterator[Task]:
        for trial in todo:
            if self.run.must_stop():
                return
            left = self.run.budget.left() / 60 if self.run.budget.limited else None
            path = str(trial_path(self.run.path, trial).absolute())
            arguments = (self.training, trial.all_values, path, self.run.path.name, rung, left)
            yield Task(f"{trial.name} until {rung or 'the end'}", arguments)

    def _keep(self, result: TaskResult) -> None:
        name = result.key.partition(" until ")[0]
        if result.ok:
            self.failed.pop(name, None)
            return
        lines = result.error.strip().splitlines() or [result.kind]
        self.failed[name] = lines[-1] if result.kind == "raised" else lines[0]
        self.run.log(f"{name} failed ({result.kind}): {result.error}")

    def _say(self, told: str) -> None:
        self.run.log(told)
        if not self.quiet:
            print(told)

    def paths_of(self, settings: Sequence[str]) -> list[str]:
        """Run directories of all settings none of whose trainings failed."""
        whole = [name for name in settings if not any(t.name in self.failed for t in self.plan.trials[name])]
        return [str(trial_path(self.run.path, trial)) for name in whole for trial in self.plan.trials[name]]


def _conclude(
    run: Run, work: _Work, config: SweepConfig, finalists: Sequence[str], rungs: Sequence[Rung], quiet: bool
) -> None:
    """The comparison of what was trained to its end, as table, figure, results and verdict of the sweep."""
    paths = work.paths_of(finalists)
    if len(paths) < 2:
        why = next(iter(work.failed.values()), "they were dropped at a rung")
        raise UserError(f"Nothing can be compared: of the others a training failed ({why}).")
    groups = open_groups(paths)
    default = _group_of(groups, work, work.plan.default)
    found = compare_groups(groups, config.metric, config.better, default)
    if default is None:  # without a default the best one is what others are measured by
        found = compare_groups(groups, config.metric, config.better, found.best)
    _write(run, found, groups, rungs, work)
    said = verdict(found, default)
    run.judge_by(Judged((found.measure.title,), None, found.measure.better or "higher"))
    best = found.row(found.best)
    result = {"value": best.mean.value, "low": best.mean.low, "high": best.mean.high, "unit": found.measure.unit}
    run.add_results({
        found.measure.title: {**result, "note": f"of the best setting, {found.best}"}, "best setting": found.best,
        "settings": len(work.plan.trials), "trainings": len(work.plan.all_trials),
        "trainings failed": len(work.failed),
    })  # fmt: skip
    run.set_verdict(*said)
    if not quiet:
        print(text(found, words=False))


def _group_of(groups: Sequence[Group], work: _Work, setting: str | None) -> str | None:
    """The name of the group that holds the trials of a setting."""
    if setting is None:
        return None
    names = {trial.name for trial in work.plan.trials[setting]}
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


def _write(run: Run, found: Comparison, groups: Sequence[Group], rungs: Sequence[Rung], work: _Work) -> None:
    from marlab.lab.compare.figure import draw

    figure = draw(found, groups, run.figure("comparison.png"))
    halving = [{"step": r.step, "metric": r.metric, "scores": dict(r.scores), "kept": r.kept} for r in rungs]
    write_json(run.path / "comparison.json", {**found.as_json(), "rungs": halving, "failed": work.failed})
    parts = [page(found, figure.relative_to(run.path).as_posix()).rstrip()]
    for rung in rungs:
        rows = [[name, show(score), "goes on" if name in rung.kept else ""] for name, score in rung.scores.items()]
        plain = [[markdown.plain(cell) for cell in row] for row in rows]
        parts += [f"## Rung {rung.step}", markdown.table(["setting", rung.metric, ""], plain)]
    if work.failed:
        rows = [[markdown.plain(cell) for cell in item] for item in work.failed.items()]
        parts += ["## Trainings that failed", markdown.table(["training", "why"], rows)]
    write_text(run.path / "comparison.md", "\n\n".join(parts) + "\n")
