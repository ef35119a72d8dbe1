"""`marlab market play`: tournaments that can tell agents apart, with bounds on what was possible.

    runs/market/NAME/worlds/WORLD_ID.json   one record per finished world
    runs/market/NAME/logs/WORLD_ID...       with --keep-logs: the world's log and its agents' decision logs
    runs/market/NAME/left_out.json          agents that cannot play, and why
    runs/market/NAME/seats.parquet          one row per tested factory and world (complete configs)
    runs/market/NAME/tables.md, results.json, figures/scores.png, figures/parts.png

The same config gives the same worlds on every engine and machine. A tournament goes on without an agent that crashes.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from marlab.lab.config import Preset
from marlab.lab.engine.tasks import EngineConfig, Task, TaskResult, run_tasks
from marlab.lab.errors import UserError
from marlab.lab.progress import Progress, stage
from marlab.lab.report.style import time_of_a_figure
from marlab.lab.runs.files import read_json, read_table, replacing, trusting, write_json, write_text
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.verdict import say
from marlab.market.arena import figures as arena_figures
from marlab.market.arena import report as arena_report
from marlab.market.arena.command import PlayCommand
from marlab.market.arena.identity import world_identity
from marlab.market.arena.judge import verdict
from marlab.market.arena.official import official
from marlab.market.arena.plan import Arena, Game, PlayConfig, label
from marlab.market.arena.report import Result
from marlab.market.simulator.experts import FILLERS, find_player

TRIAL_LIMIT_S = 300.0
"""Wall-clock seconds after which an agent's trial is ended: it would need hours for a tournament."""
WIDTH = 180
"""Characters of a printed table where there is no terminal to ask."""
FIGURES = 10
"""The figures of a tournament in the time of a plain one."""


class Tournament:
    """The folder of one tournament: finished worlds, and agents that were left out."""

    def __init__(self, path: Path) -> None:
        self._worlds, self._left_out, self._failures = path / "worlds", path / "left_out.json", path / "failures.json"
        self._logs = path / "logs"
        self._worlds.mkdir(parents=True, exist_ok=True)
        self._known: dict[str, dict[str, Any] | None] = {}
        self.tried: list[str] = []
        self.left_out: dict[str, str] = {}
        self.failed: dict[str, str] = {}  # worlds; they are played again when the tournament is resumed
        if self._left_out.exists():
            stored = read_json(self._left_out, lambda why: UserError(f"The tournament cannot be resumed: {why}."))
            with trusting(f"{self._left_out} does not tell who was left out"):
                self.tried, self.left_out = list(stored["tried"]), dict(stored["left_out"])

    def record(self, world_id: str) -> dict[str, Any] | None:
        """The record of a world, None if it is not finished."""
        if world_id not in self._known:
            file = self._worlds / f"{world_id}.json"
            if not file.exists():
                return None
            self._known[world_id] = read_table(file, lambda why: UserError(f"{why}; remove it to play it again."))
        return self._known[world_id]

    def forget_old(self, games: Iterable[Game]) -> int:
        """Worlds that other code or other weights played count as not finished; how many there were."""
        old = 0
        for game in games:
            record = self.record(game.spec.world_id)
            if record is not None and record.get("code") != world_identity(game.spec.agents):
                self._known[game.spec.world_id] = None
                old += 1
        return old

    def add(self, record: dict[str, Any]) -> None:
        """Keep a world that was played, its logs first: a world that counts has all its files."""
        for name, content in record.pop("logs", {}).items():
            self._logs.mkdir(exist_ok=True)
            with replacing(self._logs / name) as temporary:
                temporary.write_bytes(content)
        write_json(self._worlds / f"{record['world_id']}.json", record)
        self._known[record["world_id"]] = record

    def add_failure(self, world_id: str, why: str) -> None:
        """Note why a world failed."""
        self.failed[world_id] = why
        write_json(self._failures, self.failed)

    def leave_out(self, agent: str, why: str) -> str:
        """The tournament goes on without this agent; returns the sentence that says so."""
        self.left_out[agent] = why
        self._write()
        return f"{label(agent)} is left out, the tournament goes on without it: {why}"

    def add_tried(self, agent: str) -> None:
        """This agent had its trial."""
        self.tried.append(agent)
        self._write()

    def _write(self) -> None:
        write_json(self._left_out, {"tried": self.tried, "left_out": self.left_out})


def play(
    config: PlayConfig, options: RunOptions | None = None, *, engine: EngineConfig | str | None = None,
    preset: Preset | None = None, command: Sequence[str] | None = None, quiet: bool = False,
) -> Run:  # fmt: skip
    """Play a tournament, or what is missing of it, and write its tables; returns the run, closed."""
    asked = PlayCommand.of(config)
    config, engine, quiet = asked.run_config(), asked.engine_config(engine), quiet or asked.quiet
    if asked.official:
        return _play_official(config, engine, options, preset, command, quiet)
    Arena(config)  # refuses what cannot be played before a folder is made
    with Run.open("market", config, options, preset=preset, command=command) as run:
        folder = Tournament(run.path)
        if run.budget.limited:
            run.budget.expect("figures", FIGURES * time_of_a_figure())
        if config.trials:
            _try_out(config, folder, run, engine, quiet)
        result = _play_all(config, folder, run, engine, quiet, asked.keep_logs)
        if run.must_stop() and result.worlds + len(result.failed) < result.planned:
            run.stop()
        with run.budget.part("figures"), stage("tables and figures", quiet):
            write(result, run)
        if not quiet:
            arena_report.show(result, _console(), asked.details)
        if not result.seats and not run.unfinished:
            why = next(iter(result.failed.values()), "no config is complete")
            raise UserError(f"Nothing can be compared: {why}")
    return run


def draw_again(run: Run, config: PlayConfig, quiet: bool) -> None:
    """Tables, figures, results and verdict from the worlds that were played."""
    folder = Tournament(run.path)
    result = gather(Arena(config, tuple(folder.left_out)), folder)
    if not result.seats:
        raise UserError(f"No market of {run.path} is complete, so there is nothing to draw.")
    write(result, run)


def write(result: Result, run: Run) -> None:
    """Tables, numbers and figures into the run directory."""
    write_text(run.path / "tables.md", arena_report.as_markdown(result))
    write_json(run.path / "results.json", arena_report.as_json(result))
    run.judge_by(arena_report.judged_by(result))
    run.add_results(arena_report.numbers(result))
    run.set_verdict(*verdict(result, run.unfinished))
    for name, cases in arena_report.cases(result).items():
        run.add_cases(name, {"": cases})
    if result.seats:
        arena_report.write_seats(result.seats, run.path / "seats.parquet")
        arena_figures.draw(result, run.figure("scores.png"), run.figure("parts.png"))


def gather(arena: Arena, folder: Tournament, notes: Sequence[str] = ()) -> Result:
    """What is known so far. A config counts when all its worlds are finished: half a rotation favours somebody."""
    seats, worlds, planned, error = [], 0, 0, 0.0
    failed: dict[str, str] = {}  # of this plan: worlds of agents that were left out since are forgotten
    for number in arena.numbers:
        games = arena.games(number)
        records = [(game, record) for game in games if (record := folder.record(game.spec.world_id)) is not None]
        worlds, planned = worlds + len(records), planned + len(games)
        failed |= {g.spec.world_id: folder.failed[g.spec.world_id] for g in games if g.spec.world_id in folder.failed}
        error = max([error, *(record["settlement_error"] for _, record in records)])
        if len(records) == len(games):
            seats += [seat for game, record in records for seat in _tested(game, record)]
    agents = [name for name in arena.config.tested if name not in arena.left_out]
    left_out = {name: why for name, why in folder.left_out.items() if name in arena.config.everybody}
    return Result(arena.config, agents, seats, worlds, planned, left_out, failed, list(notes), settlement_error=error)


def _tested(game: Game, record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for place in game.tested:
        head = {"world_id": record["world_id"], "config": game.config, "turn": game.turn, "days": record["days"]}
        yield {**head, "n_processes": record["n_processes"], **record["seats"][place]}


def _try_out(config: PlayConfig, folder: Tournament, run: Run, engine: EngineConfig, quiet: bool) -> None:
    """A tiny world for everybody who is not built in; who crashes in it would spoil every world of the tournament."""
    from marlab.market.arena.world import trial_task

    waiting = [name for name in config.everybody if name not in (*FILLERS, *folder.tried)]
    if not waiting:
        return
    limit = min(TRIAL_LIMIT_S, config.world_timeout)
    tasks = [Task(name, (name,), time_limit_s=limit) for name in waiting]
    with (
        Progress("trials", total=len(tasks), unit="agents", quiet=quiet) as bar,
        contextlib.closing(run_tasks(trial_task, tasks, engine, stop=run.must_stop)) as results,
    ):
        for result in results:
            if not result.ok:
                bar.say(folder.leave_out(result.key, _why(result)))
            elif result.value["crashes"]:
                bar.say(folder.leave_out(result.key, result.value["crashes"][0]))
            elif result.value["exceptions"] and not quiet:
                bar.say(f"{label(result.key)} raised {result.value['exceptions']} exceptions in its trial; it plays.")
            folder.add_tried(result.key)
            bar.advance(1, failures=int(result.key in folder.left_out))


def _play_all(
    config: PlayConfig, folder: Tournament, run: Run, engine: EngineConfig, quiet: bool, keep_logs: bool
) -> Result:
    """Play until all configs are finished or the question is decided; an agent that crashes makes a new plan."""
    while True:
        arena = Arena(config, tuple(folder.left_out))
        old = folder.forget_old(game for number in arena.numbers for game in arena.games(number))
        if old and not quiet:
            print(f"{old} worlds were played by other code or other weights; they are played again.")
        batches = [[number] for number in arena.numbers] if config.until_significant else [list(arena.numbers)]
        notes: list[str] = []
        for looks, batch in enumerate(batches, 1):
            games = [game for number in batch for game in arena.games(number)]
            if _play(games, config.world_timeout, folder, run, engine, quiet, keep_logs):
                break  # somebody was left out: plan again
            if run.must_stop():
                return gather(arena, folder, notes)
            if config.until_significant:
                comparisons = gather(arena, folder).comparisons()
                if comparisons and all(c.decided for c in comparisons):
                    notes.append(f"Decided after {looks} of at most {len(batches)} configs, one look after each.")
                    return gather(arena, folder, notes)
        else:
            if config.until_significant:
                notes.append(f"Not decided after {len(batches)} configs, one look after each.")
            return gather(arena, folder, notes)


def _play(
    games: Sequence[Game], limit_s: float, folder: Tournament, run: Run, engine: EngineConfig, quiet: bool,
    keep_logs: bool,
) -> bool:  # fmt: skip
    """Play what is missing. True if an agent was left out on the way, so that the rest is played without it."""
    from marlab.market.arena.world import play_task

    agents = {game.spec.world_id: game.spec.agents for game in games}
    waiting = [game for game in games if folder.record(game.spec.world_id) is None]
    tasks = [Task(game.spec.world_id, (game.spec.to_dict(), keep_logs), time_limit_s=limit_s) for game in waiting]
    if not waiting:
        return False
    with (
        Progress("playing", total=len(games), unit="worlds", done=len(games) - len(waiting), quiet=quiet) as bar,
        contextlib.closing(run_tasks(play_task, tasks, engine, stop=run.must_stop)) as results,
    ):
        for result in results:
            if result.ok:
                folder.add({**result.value, "code": world_identity(agents[result.key])})
            else:
                folder.add_failure(result.key, _why(result))
                guilty = blamed(result.error, agents[result.key])
                if guilty is not None and guilty not in FILLERS:
                    bar.say(folder.leave_out(guilty, _why(result)))
                    return True
                bar.say(f"world {result.key} failed ({_why(result)})")
            bar.advance(1, failures=0 if result.ok else 1)
            if run.must_stop():
                break
    return False


def blamed(error: str, agents: Iterable[str]) -> str | None:
    """The agent whose file is the innermost one in the stack of a failed world, if only one agent lives there."""
    files: dict[str, set[str]] = {}
    for name in dict.fromkeys(agents):
        file = inspect.getsourcefile(find_player(name)[0])
        if file is not None:
            files.setdefault(file, set()).add(name)
    places = {file: error.rfind(f'"{file}"') for file in files}
    innermost = max(places, key=lambda file: places[file])
    return next(iter(files[innermost])) if places[innermost] >= 0 and len(files[innermost]) == 1 else None


def _why(result: TaskResult) -> str:
    """The reason of a failure in one line."""
    lines = [line.strip() for line in result.error.strip().splitlines() if line.strip()] or [result.kind]
    return (lines[-1] if result.kind == "raised" else f"{result.kind}: {lines[0]}")[:300]


def _console() -> Console:
    return Console() if sys.stdout.isatty() else Console(width=WIDTH)


def _within(row: dict[str, Any]) -> str:
    return "one seat" if row["low"] is None else f"[{row['low']:.3f}, {row['high']:.3f}]"


def _play_official(
    config: PlayConfig,
    engine: EngineConfig,
    options: RunOptions | None,
    preset: Preset | None,
    command: Sequence[str] | None,
    quiet: bool,
) -> Run:
    """The league's own tournament, as a run."""
    config.check_agents()
    with Run.open("market", config, options, preset=preset, command=command) as run:
        with stage("the league's own tournament", quiet):
            rows = official(config, run.path / "official", engine)
        best = max(rows, key=lambda row: float(row["score"]), default=None)
        if best is not None:
            told = {"agent": best["agent"], "agents": len(rows), "score": best["score"]}
            run.set_verdict(say("market.best_official", **told), say("lab.look"))
        write_json(run.path / "results.json", rows)
        run.add_results({f"official score {row['agent']}": row["score"] for row in rows})
        scores = ("score", "mean", "balanced")
        lines = [
            [row["agent"], str(row["seats"]), *(f"{row[name]:.3f}" for name in scores), _within(row)] for row in rows
        ]
        head = ("agent", "seats", "official score", "mean of seats", "mean of factories", "95 % of these markets")
        table = arena_report.Table("anac2024_std", head, lines)
        if not quiet:
            arena_report.print_table(table, _console())
        write_text(run.path / "tables.md", arena_report.table_as_markdown(table) + "\n")
    return run
