"""The work of `marlab sweep`: trials on an engine, rungs, and at the end the one comparison of all worlds.

    runs/sweep/NAME/plan.json                    every setting and its trials
    runs/sweep/NAME/trials/TRIAL/                one ordinary run per setting and seed
    runs/sweep/NAME/comparison.md, .json, figures/comparison.png

Nothing else is kept about trials: whether one is done, its own record says, so that none is trained twice and none is
forgotten, whatever was killed in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from marlab.lab.config import Preset
from marlab.lab.engine.tasks import EngineConfig, Task, TaskResult, run_tasks
from marlab.lab.errors import UserError
from marlab.lab.progress import Progress
from marlab.lab.runs.files import write_json
from marlab.lab.runs.judged import Better, Judged
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.sweep.conclude import Trained, conclude, plan_table
from marlab.lab.sweep.config import SweepCommand, SweepConfig
from marlab.lab.sweep.halving import Rung, decide_between
from marlab.lab.sweep.plan import Plan, Training, Trial, make_plan, ready, trial_path
from marlab.lab.sweep.trial import is_done, run_trial

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
        write_json(run.path / "plan.json", plan_table(plan))
        work = _Work(run, training, config, plan, engine, quiet)
        trained = Trained(run.path, plan, work.failed)
        try:
            rungs = work.halve(judged, direction) if config.rungs else []
            finalists = rungs[-1].kept if rungs else list(plan.trials)
            work.train(finalists, None)
        except Stopped:
            whole = trained.finished()
            if len(trained.paths_of(whole)) > 1 and not run.signalled:
                conclude(run, trained, config, whole, [], quiet)
            run.leave()
        conclude(run, trained, config, finalists, rungs, quiet)
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
            rung = decide_between(paths, step, self.config.halving or str(judged.metric), self.config.keep, better)
            rungs.append(rung)
            alive = rung.kept
            self._say(f"rung {step}: {len(alive)} of {len(paths)} settings go on ({rung.metric}): {'; '.join(alive)}")
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
