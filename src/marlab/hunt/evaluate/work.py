"""Measuring what is missing: cells of rule-based players together in large batches, everything else job by job, in this
process or on an engine. Where and in which order it is done changes no value."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Sequence

from marlab.hunt.evaluate.cells import Measurement, Measurer, Tick, measure_task, players_of, unique
from marlab.lab.engine.tasks import EngineConfig, Task, TaskResult, run_tasks
from marlab.lab.errors import UserError
from marlab.lab.progress import Progress
from marlab.lab.runs.measurements import Measurements

MOST_GAMES = 8192
"""Games of rule-based players that are played at once."""
SERIAL = EngineConfig("serial")


def measure_all(
    bench: Measurer, jobs: Sequence[Measurement], measurements: Measurements, engine: EngineConfig = SERIAL, *,
    cut: Callable[[], None] = lambda: None, left_s: Callable[[], float] = lambda: math.inf, quiet: bool = False,
) -> None:  # fmt: skip
    """Afterwards all jobs are in `measurements`. The serial engine is this process itself.

    cut: called at every step, raises to leave a job in its middle (it is measured again). left_s: the seconds that are
    left for all of it.
    """
    missing = [job for job in unique(bench, jobs) if measurements.get(*bench.key(job)) is None]
    rules = [job for job in missing if bench.exact_arithmetic(job)]
    _rule_cells(bench, rules, measurements, cut, quiet)
    others = [job for job in missing if not bench.exact_arithmetic(job)]
    if not others:
        return
    if engine.engine == "serial" or (bench.game.device.type == "cuda" and engine == EngineConfig()):
        _here(
            bench, others, measurements, cut, quiet
        )  # one GPU is shared by several processes only if that is asked for
    else:
        _on_engine(bench, others, measurements, engine, left_s, quiet)


def _rule_cells(
    bench: Measurer, jobs: Sequence[Measurement], measurements: Measurements, cut: Callable[[], None], quiet: bool
) -> None:
    size = max(1, MOST_GAMES // bench.config.runs)
    chunks = [jobs[i : i + size] for i in range(0, len(jobs), size)]
    if not chunks:
        return
    total = len(chunks) * bench.config.steps
    with Progress(f"rule-based players, {len(jobs)} cells", total=total, unit="steps", quiet=quiet) as bar:
        for chunk in chunks:
            for job, score in zip(chunk, bench.rule_scores(chunk, _ticking(bar, cut))):
                measurements.put(score, *bench.key(job))
            measurements.safe_point()


def _ticking(bar: Progress, cut: Callable[[], None]) -> Tick:
    def tick(steps: int) -> None:
        bar.advance(steps)
        cut()

    return tick


def _here(
    bench: Measurer, jobs: Sequence[Measurement], measurements: Measurements, cut: Callable[[], None], quiet: bool
) -> None:
    with Progress("measuring", total=sum(_steps(bench, job) for job in jobs), unit="steps", quiet=quiet) as bar:
        for number, job in enumerate(jobs):
            bar.show(cell=f"{number + 1} of {len(jobs)}")
            before = bar.done
            value = bench.measure(job, _ticking(bar, cut))
            measurements.put(value, *bench.key(job))
            bar.advance(before + _steps(bench, job) - bar.done)
            measurements.safe_point()


def _on_engine(
    bench: Measurer,
    jobs: Sequence[Measurement],
    measurements: Measurements,
    engine: EngineConfig,
    left_s: Callable[[], float],
    quiet: bool,
) -> None:
    by_name = {measurements.name(*bench.key(job)): job for job in jobs}
    until = time.time() + left_s()
    tasks = [
        Task(name, (bench.config, job, bench.games, players_of(bench, job), until)) for name, job in by_name.items()
    ]
    with (
        Progress("measuring", total=sum(_steps(bench, job) for job in jobs), unit="steps", quiet=quiet) as bar,
        contextlib.closing(run_tasks(measure_task, tasks, engine)) as results,
    ):
        for number, result in enumerate(results):
            job = by_name[result.key]
            if not result.ok:
                if time.time() > until:  # it was left in its middle
                    measurements.safe_point()
                raise _failure(result, job)
            measurements.put(result.value, *bench.key(job))
            bar.show(cell=f"{number + 1} of {len(jobs)}")
            bar.advance(_steps(bench, job))
            measurements.safe_point()


def _steps(bench: Measurer, job: Measurement) -> int:
    """How much work a job is, in game steps, about."""
    if job.kind == "score":
        return bench.config.steps
    return bench.game.config.final_time if job.kind == "self-play" else bench.config.layouts


def _failure(result: TaskResult, job: Measurement) -> Exception:
    """A sentence stays a sentence on its way from another process; anything else keeps its traceback."""
    last = (result.error.strip().splitlines() or [result.kind])[-1]
    kind, _, sentence = last.partition(": ")
    if kind.endswith("UserError"):
        return UserError(sentence)
    return RuntimeError(f"measuring {job} failed ({result.kind}):\n{result.error}")
