"""Many independent tasks on `serial | local | dask | ray`: the same promises on every one of them.

Each task runs in a child process of its own that can be ended at any moment (child.py), with its own time and
memory limit. Results come back as they finish; a task that fails is a result like any other. See docs/guides/engine.md.
"""

from __future__ import annotations

import os
import pickle
import sys
import traceback
import uuid
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Protocol, Self, TypeVar, get_args

from marlab.lab.engine.child import LocalBackend, usable_cores
from marlab.lab.engine.wire import FunctionSpec, Job, Kind, Outcome
from marlab.lab.errors import UserError
from marlab.lab.extras import need
from marlab.lab.progress import Progress

EngineName = Literal["serial", "local", "dask", "ray"]
CLUSTERS = ("dask", "ray")
MOST_WORKERS = 4096
"""More tasks at once than this mean a slip of the pen: every worker is a process with files of its own."""
_ASK_EVERY_S = 0.25
"""Time between two questions whether to stop."""
_CLUSTER_IDLE_S = 60.0
"""Processes that wait on a cluster worker end themselves after so long without a task."""


@dataclass(frozen=True)
class Task:
    """One call of the batch's function."""

    key: str
    """Names the task in its batch; also seeds the global generators of its process."""
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    time_limit_s: float | None = None
    """Wall-clock seconds after which the task is ended; None: no limit."""
    memory_limit_mb: float | None = None
    """Memory (MB) of the task and all processes it starts, above which it is ended; None: no limit."""

    def __post_init__(self) -> None:
        if not isinstance(self.key, str) or not self.key:
            raise UserError(f"A task's key must be a text that is not empty, not {self.key!r}.")
        for name in ("time_limit_s", "memory_limit_mb"):
            limit = getattr(self, name)
            if limit is not None and not limit > 0:
                raise UserError(f"{name} of task {self.key!r} is {limit}; it must be positive, or None.")


@dataclass(frozen=True)
class TaskResult:
    """How one task ended."""

    key: str
    kind: Kind
    """ok, raised (an exception), timeout, memory (a limit was passed), died (its process or worker was
    lost), cancelled (somebody else removed it from a shared cluster)."""
    value: Any = None
    """What the function returned; None unless ok."""
    error: str = ""
    """Why it failed: a traceback, or one sentence and the stack where the task was; empty when ok."""
    output: str = ""
    """The end of what the task printed (16 KB at most)."""
    seconds: float = 0.0
    """Wall-clock time of the last attempt, without waiting in a queue."""
    attempts: int = 1
    worker: str = ""
    """Machine and process that ran it, as host:pid; empty when it was lost with its worker."""
    peak_mb: float = 0.0
    """Most memory (MB) seen; a help for choosing memory_limit_mb."""

    @property
    def ok(self) -> bool:
        """Whether there is a value."""
        return self.kind == "ok"


@dataclass(frozen=True)
class EngineConfig:
    """Where tasks run, and how many at once."""

    engine: EngineName = "local"
    """serial: one at a time; local: the cores of this machine; dask, ray: a cluster."""
    workers: int | None = None
    """Tasks at once; default: all cores of this machine, or the whole cluster when an address is given."""
    address: str | None = None
    """Address of a running Dask scheduler or Ray cluster (HOST:PORT); default: start one here, then stop it."""
    retries: int = 1
    """How often a task is tried again after its process or worker died; other failures are never retried."""

    def __post_init__(self) -> None:
        if self.engine not in get_args(EngineName):
            names = ", ".join(get_args(EngineName))
            raise UserError(f"There is no engine {self.engine!r}; the engines are {names}.")
        if self.workers is not None and not 1 <= self.workers <= MOST_WORKERS:
            raise UserError(f"workers is {self.workers}; it must be at least 1 and at most {MOST_WORKERS:,}.")
        if self.engine == "serial" and self.workers not in (None, 1):
            raise UserError(f"The serial engine has one worker, not {self.workers}; use --engine local.")
        if self.retries < 0:
            raise UserError(f"retries is {self.retries}; it must be 0 or more.")
        if self.address is not None and self.engine not in CLUSTERS:
            raise UserError(f"The {self.engine} engine takes no address; use --engine dask or --engine ray.")
        if self.engine in CLUSTERS:
            need(self.engine, f"--engine {self.engine}")


def parse_parallelism(text: str) -> EngineConfig:
    """An EngineConfig from an engine's name or from an older spelling.

    serial, local, dask, ray; parallel and loky mean local, and loky:0.5 is local with half of the cores.
    """
    name, colon, share = text.partition(":")
    if name == "loky" and colon:
        try:
            fraction = float(share)
        except ValueError:
            fraction = 0.0
        if not 0 < fraction <= 1:
            raise UserError(f"In {text!r} the share of the cores must be a number in (0, 1], as in loky:0.5.")
        return EngineConfig("local", workers=max(1, int(fraction * usable_cores())))
    aliases: dict[str, EngineName] = {name: name for name in get_args(EngineName)}
    aliases |= {"parallel": "local", "loky": "local"}
    if text not in aliases:
        raise UserError(f"Unknown parallelism {text!r}; use one of {', '.join(aliases)} or loky:FRACTION.")
    return EngineConfig(aliases[text])


def run_tasks(
    function: Callable[..., Any],
    tasks: Iterable[Task],
    engine: EngineConfig | str = "local",
    progress: Progress | str | None = None,
    stop: Callable[[], bool] | None = None,
    imports: tuple[str, ...] = (),
) -> Generator[TaskResult, None, None]:
    """Run `function(*task.args, **task.kwargs)` for every task; yields a result for each, as they finish.

    The function must be importable (defined at the top level of a module). `tasks` may be a generator: only
    a few tasks per worker are taken from it ahead of time. `progress` is a bar to advance, or a label for a
    new one. Closing the generator, an exception or the death of this process ends all that still runs; so does
    `stop`, which is asked all the time, also while tasks of hours are under way. `imports` names modules that the
    function will import by itself: workers import them once, before the first task.
    """
    config = engine if isinstance(engine, EngineConfig) else parse_parallelism(engine)
    if not hasattr(os, "fork"):
        raise UserError("The task engine needs a Unix system (Linux or macOS); on Windows use WSL.")
    spec = replace(_describe(function, idle_s=_CLUSTER_IDLE_S if config.engine in CLUSTERS else None), imports=imports)
    if isinstance(tasks, Collection):  # a generator is checked on the way: looking ahead would use it up
        for _ in _unique(tasks):
            pass
    return _run(spec, tasks, config, progress, stop)


def _describe(function: Callable[..., Any], idle_s: float | None) -> FunctionSpec:
    """How a child process finds the function; refuses one that it could not import."""
    name = getattr(function, "__qualname__", None)
    module = getattr(function, "__module__", None)
    shown = name or repr(function)
    if module in ("__main__", "__mp_main__"):
        raise UserError(
            f"The function {shown} is defined in the script that is being run, which other processes cannot "
            "import: put it into a module (a file of its own) and import it from there."
        )
    target: Any = sys.modules.get(module or "")
    for part in (name or "").split("."):
        target = getattr(target, part, None)
    if module is None or target is not function:
        raise UserError(
            f"The function {shown} cannot be imported by other processes: it must be defined with def at the "
            "top level of a module; what a lambda, closure or partial would hold goes into the task's args."
        )
    path = tuple(os.path.abspath(entry) for entry in sys.path)
    hash_seed = os.environ.get("PYTHONHASHSEED", "0")
    return FunctionSpec(uuid.uuid4().hex[:12], module, str(name), path, os.getcwd(), hash_seed, idle_s)


def _unique(tasks: Iterable[Task]) -> Iterator[Task]:
    """The same tasks, refusing the first key that comes a second time."""
    seen: set[str] = set()
    for task in tasks:
        if task.key in seen:
            raise UserError(f"Two tasks have the key {task.key!r}; every task of a batch needs its own.")
        seen.add(task.key)
        yield task


class _Backend(Protocol):
    """What an engine offers. `close` ends everything that still runs and may be called at any time."""

    def capacity(self) -> int: ...
    def submit(self, job: Job) -> None: ...
    def next_outcome(self, wait_s: float | None = None) -> tuple[str, Outcome] | None: ...
    def close(self) -> None: ...


def _open_backend(config: EngineConfig, spec: FunctionSpec) -> _Backend:
    if config.engine == "serial":
        return LocalBackend(spec, workers=1, ahead=0)
    if config.engine == "local":
        workers = config.workers or usable_cores()
        return LocalBackend(spec, workers, ahead=workers)
    if config.engine == "dask":
        from marlab.lab.engine.dask import DaskBackend

        return DaskBackend(spec, config.address, config.workers)
    from marlab.lab.engine.ray import RayBackend

    return RayBackend(spec, config.address, config.workers)


def _run(
    spec: FunctionSpec,
    tasks: Iterable[Task],
    config: EngineConfig,
    progress: Progress | str | None,
    stop: Callable[[], bool] | None,
) -> Generator[TaskResult, None, None]:
    with ExitStack() as stack:
        bar = progress
        if isinstance(bar, str):
            total = len(tasks) if isinstance(tasks, Collection) else None
            bar = stack.enter_context(Progress(bar, total, unit="tasks"))
        backend = _open_backend(config, spec)
        stack.callback(backend.close)
        if bar is not None and bar is not progress:
            bar.begin()  # starting a cluster takes seconds that say nothing about the pace
        for result in _results(backend, tasks, config.retries, stop):
            if bar is not None:
                bar.advance(1, failures=0 if result.ok else 1)
            yield result


def _results(
    backend: _Backend, tasks: Iterable[Task], retries: int, stop: Callable[[], bool] | None
) -> Generator[TaskResult, None, None]:
    """Keep the backend busy and turn its outcomes into results, trying again what died."""
    todo = _unique(tasks)
    under_way: dict[str, Job] = {}
    attempts: dict[str, int] = {}
    exhausted = False
    while stop is None or not stop():
        while not exhausted and len(under_way) < backend.capacity():
            task = next(todo, None)
            if task is None:
                exhausted = True
                break
            try:
                payload = pickle.dumps((tuple(task.args), dict(task.kwargs)), protocol=5)
            except Exception:
                reason = f"The task's arguments cannot be pickled:\n\n{traceback.format_exc()}"
                yield TaskResult(task.key, "raised", error=reason, attempts=0)
                continue
            job = Job(task.key, payload, task.time_limit_s, task.memory_limit_mb)
            under_way[task.key], attempts[task.key] = job, 1
            backend.submit(job)
        if not under_way:
            return
        ended = backend.next_outcome(None if stop is None else _ASK_EVERY_S)
        if ended is None:
            continue
        key, outcome = ended
        if outcome.kind == "died" and attempts[key] <= retries:
            attempts[key] += 1
            backend.submit(under_way[key])
            continue
        del under_way[key]
        yield _result(key, outcome, attempts.pop(key))


def _result(key: str, outcome: Outcome, attempts: int) -> TaskResult:
    kind, error, value = outcome.kind, outcome.error, None
    if kind == "ok":
        try:
            value = pickle.loads(outcome.payload)
        except Exception:
            kind = "raised"
            error = f"The task finished, but its result cannot be loaded here:\n\n{traceback.format_exc()}"
    return TaskResult(
        key, kind, value, error, outcome.output, outcome.seconds, attempts, outcome.worker, outcome.peak_mb
    )


C = TypeVar("C")


@dataclass(frozen=True)
class EngineFlags:
    """Base of a command's dataclass, before that of its config: `class PlayCommand(EngineFlags, PlayConfig)`."""

    engine: EngineName = "local"
    """serial, local (the cores of this machine), dask or ray (a cluster)."""
    workers: int | None = None
    """Tasks at once; default: all cores of this machine, or the whole cluster when an address is given."""
    address: str | None = None
    """Address of a running Dask scheduler or Ray cluster (HOST:PORT)."""
    quiet: bool = False
    """Print nothing but errors."""

    @classmethod
    def of(cls, config: Any) -> Self:
        """A command itself, or one with a config's settings and usual flags: functions take either."""
        return config if isinstance(config, cls) else cls(**{f.name: getattr(config, f.name) for f in fields(config)})

    def engine_config(self, instead: EngineConfig | str | None = None) -> EngineConfig:
        """Where the tasks run: as the flags say, or as a caller says instead."""
        if instead is None:
            return EngineConfig(self.engine, self.workers, self.address)
        return instead if isinstance(instead, EngineConfig) else parse_parallelism(instead)


def config_of(command: Any, kind: type[C]) -> C:
    """The part of a command that decides its results, as the dataclass `kind` that it extends: what a resumed run
    must repeat."""
    return kind(**{f.name: getattr(command, f.name) for f in fields(kind)})  # type: ignore[arg-type]
