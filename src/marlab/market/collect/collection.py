"""Experts play worlds of the Standard league, and every world becomes one log file (`marlab market collect`).

    runs/market/NAME/worlds/WORLD_ID.parquet   the log; the file is there exactly when the world is finished
    runs/market/NAME/worlds.jsonl              one line per finished world: who, scores, decisions, CPU seconds
    runs/market/NAME/failures.jsonl            one line per world that failed, with the reason

Logs of the same seed are equal on every engine and machine; what depends on them (times, workers) is in worlds.jsonl.
"""

from __future__ import annotations

import contextlib
import errno
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from marlab.lab.config import Preset
from marlab.lab.engine.child import usable_cores
from marlab.lab.engine.tasks import EngineConfig, Task, TaskResult, run_tasks
from marlab.lab.errors import UserError
from marlab.lab.progress import Progress, duration, stage
from marlab.lab.report.style import time_of_a_figure
from marlab.lab.runs.files import append, end_broken_line, read_bytes, replacing
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.verdict import say
from marlab.market.collect.command import CollectCommand
from marlab.market.collect.plan import CollectionPlan, MarketCollectConfig
from marlab.market.collect.report import describe, draw, results_of, summary_of
from marlab.market.logs.worldfile import read_world

SECONDS_PER_FACTORY_DAY = 0.0075
"""What a day costs per factory in worlds of official shape on one core; slow entrants (ArionAgent, Agent01StdAgent,
MatchingPennies, XenoSotaAgent) cost up to ten times as much."""
FIGURES = 4
"""The figure of a collection in the time of a plain one."""
FULL_DISK = ("No space left on device", "Disk quota exceeded")


class Collection:
    """The folder of one collection: which worlds are in it, and how to add one."""

    def __init__(self, path: Path) -> None:
        self.worlds, self._index, self._failures = path / "worlds", path / "worlds.jsonl", path / "failures.jsonl"
        self.worlds.mkdir(parents=True, exist_ok=True)

    def file(self, world_id: str) -> Path:
        """The log of a world; it exists exactly when the world is finished."""
        return self.worlds / f"{world_id}.parquet"

    def finished(self) -> dict[str, dict[str, Any]]:
        """The line of every finished world, by its id. A line that was lost is made again from the log."""
        lines = {row["world_id"]: row for row in _read_lines(self._index)}
        rows = {}
        for file in sorted(self.worlds.glob("*.parquet")):
            row = lines.get(file.stem)
            if row is None:
                row = summary_of(read_world(file).meta) | {"bytes": file.stat().st_size}
                _append(self._index, row)
            rows[file.stem] = row
        return rows

    def add(self, result: TaskResult) -> dict[str, Any]:
        """Keep the log of a world that was played, first the file, then its line."""
        content, cpu_s = result.value
        with replacing(self.file(result.key)) as temporary:
            temporary.write_bytes(content)
        row = summary_of(read_world(self.file(result.key)).meta)
        row |= {"cpu_s": round(cpu_s, 3), "seconds": round(result.seconds, 3), "bytes": len(content)}
        row |= {"worker": result.worker, "attempts": result.attempts, "peak_mb": round(result.peak_mb)}
        _append(self._index, row)
        return row

    def failures(self) -> dict[str, str]:
        """Why worlds failed, by their ids."""
        return {row["world_id"]: str(row["reason"]) for row in _read_lines(self._failures)}

    def add_failure(self, result: TaskResult) -> str:
        """Note why a world failed; returns the reason in one line."""
        lines = [line for line in result.error.strip().splitlines() if line.strip()] or [result.kind]
        reason = lines[-1] if result.kind == "raised" else lines[0]
        _append(
            self._failures,
            {"world_id": result.key, "kind": result.kind, "reason": reason, "attempts": result.attempts}
            | {"seconds": round(result.seconds, 1), "error": result.error[-4000:]},
        )
        return f"{result.kind}: {reason}"


def collect(
    config: MarketCollectConfig, options: RunOptions | None = None, *, engine: EngineConfig | str | None = None,
    preset: Preset | None = None, command: Sequence[str] | None = None, quiet: bool = False,
) -> Run:  # fmt: skip
    """Play and record all worlds of a plan that are not there yet; returns the run, closed."""
    asked = CollectCommand.of(config)
    config, engine, quiet = asked.run_config(), asked.engine_config(engine), quiet or asked.quiet
    plan = CollectionPlan(config)
    with Run.open("market", config, options, preset=preset, command=command) as run:
        collection = Collection(run.path)
        rows = collection.finished()
        if not quiet:
            print(announce(plan, len(rows), engine), flush=True)
        if run.budget.limited:
            run.budget.expect("figures", FIGURES * time_of_a_figure())
        failed = _play(plan, rows, collection, run, engine, asked.simulator_tables, quiet)
        rows = {spec.world_id: rows[spec.world_id] for spec in plan if spec.world_id in rows}
        run.add_results(results_of(list(rows.values()), planned=len(plan), failed=failed))
        if rows:
            with run.budget.part("figures"), stage("figures", quiet):
                draw(list(rows.values()), run.figure("collection.png"))
        if not quiet:
            print(describe(list(rows.values()), planned=len(plan), failed=failed))
            print(f"logs: {collection.worlds}")
        if len(rows) + len(failed) < len(plan):
            run.stop()
        if failed and not rows:
            raise UserError(f"No world could be played; the first one failed with {next(iter(failed.values()))}")
        judge(run)
    return run


def draw_again(run: Run, config: MarketCollectConfig, quiet: bool) -> None:
    """Results, figure and verdict from the recorded worlds."""
    collection, plan = Collection(run.path), CollectionPlan(config)
    rows = collection.finished()
    failed = {world: why for world, why in collection.failures().items() if world not in rows}
    run.add_results(results_of(list(rows.values()), planned=len(plan), failed=failed))
    if rows:
        draw(list(rows.values()), run.figure("collection.png"))
    judge(run)


def judge(run: Run) -> None:
    """The verdict, from the results of the run."""
    found = run.results
    told = {name: found[name] for name in ("days", "decisions", "worlds")}
    told |= {"planned": found["worlds_planned"], "failed": found["worlds_failed"]}
    run.set_verdict(say("market.collected", **told), say("lab.go_on" if run.unfinished else "market.next_samples"))


def announce(plan: CollectionPlan, finished: int, engine: EngineConfig) -> str:
    """What is going to happen: worlds, days, hours."""
    workers = engine.workers or (1 if engine.engine == "serial" else usable_cores())
    share = 1 - finished / max(1, len(plan))
    seconds = SECONDS_PER_FACTORY_DAY * plan.factory_days * share / workers
    names = ", ".join(name.rpartition(":")[2] for name in plan.experts)
    done = f", {finished} of them finished before" if finished else ""
    sets = f"{plan.n_sets} set{'s' if plan.n_sets > 1 else ''} of {plan.k} competitors"
    return (
        f"competitors: {names}\n"
        f"planned: {len(plan):,} worlds{done} ({plan.config.configs} configs x {sets} x {plan.assignments} assignments "
        f"x {plan.config.runs} runs), {plan.total_days:,} days, about {duration(seconds)} "
        f"({seconds / 3600:.1f} hours) with {workers} worker{'s' if workers > 1 else ''}"
    )


def _play(
    plan: CollectionPlan, rows: dict[str, dict[str, Any]], collection: Collection, run: Run, engine: EngineConfig,
    simulator_tables: bool, quiet: bool,
) -> dict[str, str]:  # fmt: skip
    """Play what is missing, adding to `rows`; returns the reasons of failures by world."""
    from marlab.market.simulator.record import record_task

    tables = run.path / "simulator" if simulator_tables else None
    finished = set(rows)
    failed: dict[str, str] = {}

    def tasks() -> Iterator[Task]:
        for spec in plan:
            if spec.world_id not in finished:
                kept = str(tables / spec.world_id) if tables is not None else None
                yield Task(spec.world_id, (spec.to_dict(), kept), time_limit_s=plan.config.world_timeout)

    days, started = 0, time.monotonic()
    done = len(finished & {spec.world_id for spec in plan}) if finished else 0
    with (
        Progress("collecting", total=len(plan), unit="worlds", done=done, quiet=quiet) as bar,
        contextlib.closing(run_tasks(record_task, tasks(), engine, stop=run.must_stop)) as results,
    ):
        for result in results:
            if result.ok:
                rows[result.key] = _kept(collection, result)
                days += rows[result.key]["days"]
            else:
                failed[result.key] = collection.add_failure(result)
                if any(why in result.error for why in FULL_DISK):  # playing on would fail in every world
                    raise _full_disk(collection)
                bar.say(f"world {result.key} failed ({failed[result.key]})")
            hours = (time.monotonic() - started) / 3600
            pace: dict[str, float | str] = {"worlds/h": f"{(len(rows) - len(finished)) / hours:.0f}"}
            bar.show(**pace, **{"days/s": days / hours / 3600})
            bar.advance(1, failures=0 if result.ok else 1)
            if run.must_stop():
                break
    return failed


def _kept(collection: Collection, result: TaskResult) -> dict[str, Any]:
    try:
        return collection.add(result)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _full_disk(collection) from None
        raise


def _full_disk(collection: Collection) -> UserError:
    kept = sum(1 for _ in collection.worlds.glob("*.parquet"))
    return UserError(
        f"The disk is full: {kept} finished worlds are kept in {collection.worlds}; "
        "free some space and repeat the command with --resume."
    )


def _append(path: Path, row: dict[str, Any]) -> None:
    end_broken_line(path)
    append(path, (json.dumps(row, sort_keys=True) + "\n").encode())


def _read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Whole lines of a JSONL file; the last one may be cut off by a kill."""
    if path.exists():
        for line in read_bytes(path).splitlines():
            with contextlib.suppress(ValueError, RecursionError):
                row = json.loads(line)
                if isinstance(row, dict):
                    yield row
