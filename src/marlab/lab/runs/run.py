"""A run directory: what was asked, what happened, and everything that came out of it.

    runs/<world>/<name>/
      run.json  config.json  metrics.jsonl  tb/  checkpoints/  figures/  media/  note.md  report/  log.txt  lock

`Run` is used by the one process that works on the run; `marlab.lab.runs.records` reads run directories of others.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, ClassVar

from marlab.lab.config import Preset, check_values, config_hash, diff, to_dict
from marlab.lab.errors import UserError
from marlab.lab.progress import LINE_EVERY
from marlab.lab.runs.budget import Budget, announce
from marlab.lab.runs.files import append, read_table, tidy, write_json
from marlab.lab.runs.folders import write_down
from marlab.lab.runs.judged import Judged, write_cases
from marlab.lab.runs.lock import Lock
from marlab.lab.runs.metrics import MetricsWriter
from marlab.lab.runs.record import host, new_record, now, read_record, versions
from marlab.lab.runs.stopping import stop_signals
from marlab.lab.verdict import Sentence, stored, texts

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
UNWRITTEN = "unwritten"
"""A file that stands where the end of a run could not be written down, for example because the disk was full."""
LEFT_BY_A_START = re.compile(r"log\.txt|lock|\.lock\.[0-9a-f]{32}|\.run\.json\..*\.tmp")
"""Names of all that a process can leave in a run directory when it is killed before run.json is there."""


@dataclass(frozen=True)
class RunOptions:
    """How a run is made and kept, not what it computes."""

    COMMON: ClassVar = ("name", "output_dir", "resume", "threads", "time_limit", "background", "yes")
    TITLE: ClassVar = "the run"

    name: str | None = None
    """Name of the run below runs/<world>/; by default made from the preset, the seed and the config."""
    output_dir: Path | None = None
    """Use exactly this folder as the run directory instead of runs/<world>/<name>."""
    resume: bool = False
    """Continue the run of this name where its last checkpoint left it."""
    threads: int = 1
    """CPU threads. One repeats a run bit for bit; more may be faster, and come to nearly the same."""
    time_limit: float | None = None
    """End within this many minutes, start, evaluation and films included; what was not done can be resumed."""
    tags: tuple[str, ...] = ()
    """Words to find the run by."""
    group: str | None = None
    """Runs of one comparison share a group."""
    goal: str | None = None
    """What the run is for, in one line; the training record is grouped by it."""
    parent: str | None = None
    """The run that this one starts from or is compared with, as world/name."""
    background: bool = False
    """Detach from the terminal; output goes to log.txt in the run directory."""
    yes: bool = False
    """Do not ask on a terminal before work that is known to take long."""

    def __post_init__(self) -> None:
        if self.time_limit is not None and not 0 < self.time_limit < math.inf:
            raise UserError(f"--time-limit is {self.time_limit:g}, expected a positive number of minutes.")
        if not 1 <= self.threads <= 1024:
            raise UserError(f"--threads is {self.threads}, expected a number from 1 to 1024.")
        if self.name is not None and not NAME.fullmatch(self.name):
            raise UserError(f"--name is '{self.name}', expected up to 100 letters, digits, '.', '_' and '-'.")


_AROUND: ContextVar[Run | None] = ContextVar("around", default=None)
"""The run whose work is done here, if any: runs that are opened meanwhile are its phases."""


class Interrupted(Exception):
    """Raised by a trainer (through `Run.leave`) after it saved its last checkpoint."""


class Run:
    """The process that works on a run. Use it as a context manager: the status is right however the block ends."""

    def __init__(self, path: Path, record: dict[str, Any], resumed: bool) -> None:
        self.path, self._record, self.resumed = path, record, resumed
        self._lock = Lock(path / "lock")
        self._metrics: MetricsWriter | None = None
        self._signal: int | None = None
        self._out_of_time = False  # by the last answer of `should_stop`
        self.budget = Budget()
        self._stopped: str | None = None
        self._opened = time.monotonic()
        self._around: Run | None = None
        self._handlers = ExitStack()

    # --- opening and closing --------------------------------------------------------------------------------

    @classmethod
    def open(
        cls, world: str, config: Any, options: RunOptions | None = None, *, preset: Preset | None = None,
        root: Path = Path("runs"), command: Sequence[str] | None = None, before: Callable[[], None] = lambda: None,
    ) -> Run:  # fmt: skip
        """Make the run directory, or take up an existing one with `options.resume`; refuses before any change. `before`
        is called for a new run when everything is checked and nothing is written; it may refuse, too."""
        options = options or RunOptions()
        check_values(config)
        path = run_path(world, config, options, preset, root)
        if path.exists() and not path.is_dir():
            raise UserError(f"{path} is a file, not a folder for a run; choose another --name or --output-dir.")
        old = read_record(path) if (path / "run.json").exists() else None
        if old is None and path.exists() and not _never_started(path):
            raise UserError(f"{path} exists and is not a run directory; choose another --name or --output-dir.")
        planned = old is not None and old["status"] == "planned"
        if old is not None and not planned:
            _check_continuation(path, old, config, options)
        fresh = old is None or planned
        if fresh and options.resume and old is None:
            raise UserError(f"There is no run at {path} to resume; leave --resume out to start it.")
        if fresh:
            before()
        run = cls(path, old or new_record(world, path.name), resumed=not fresh)
        run._lock.acquire()
        if old is None and options.output_dir is not None:
            run._record["root"] = write_down(path, root)
        try:
            run._begin(config, options, preset, command)
        except BaseException:
            run._lock.release()
            raise
        return run

    @classmethod
    @contextmanager
    def revisit(cls, path: Path) -> Iterator[Run]:
        """A run that was made before, to write its figures, results and verdict anew; its status and history stay."""
        record = read_record(path)
        if record["status"] in ("planned", "abandoned"):
            raise UserError(f"{path} is {record['status']}: there is nothing to draw.")
        run = cls(path, record, resumed=True)
        run._lock.acquire()
        try:
            tidy(path)
            with stop_signals(run._on_signal):
                yield run
        finally:
            run._lock.release()

    def _begin(self, config: Any, options: RunOptions, preset: Preset | None, command: Sequence[str] | None) -> None:
        self._note_crash()
        tidy(self.path)
        if not self.resumed:
            self._write()  # still planned, so that a start which is killed from here on can be made again
        self._describe(config, options, preset, command)
        stored = read_table(self.path / "config.json", UserError) if self.resumed else None
        if stored != to_dict(config):  # a run that goes on may have grown (`MAY_GROW`)
            write_json(self.path / "config.json", to_dict(config))
        around = _AROUND.get()
        if options.time_limit is not None:
            self.budget = Budget(options.time_limit * 60.0)
        elif around is not None:  # a phase of a longer run has that one's time
            self.budget = around.budget
        (self.path / UNWRITTEN).unlink(missing_ok=True)
        began = now()
        self._record.update(status="running", reason=None, started=self._record["started"] or began, ended=None)
        attempt = {"started": began, "ended": None, "status": "running", "reason": None, "seconds": None}
        self._record["attempts"].append(attempt)
        self._write()

    def _note_crash(self) -> None:
        """A record that still says running belongs to a process that died without a word."""
        if self._record["status"] == "running":
            self._record["attempts"][-1].update(status="interrupted", reason="the process died")

    def _describe(self, config: Any, options: RunOptions, preset: Preset | None, command: Sequence[str] | None) -> None:
        words = list(command) if command is not None else None
        self._record.update(
            command=self._record["command"] if words is None else shlex.join(words),
            kind=getattr(config, "KIND", None), config_hash=config_hash(config),
            config_type=f"{type(config).__module__}:{type(config).__qualname__}",
            seed=getattr(config, "seed", None), versions=versions(), host=host(),
        )  # fmt: skip
        self.judge_by(getattr(config, "judged_by", Judged()))
        for key in ("group", "goal", "parent"):
            if getattr(options, key) is not None:
                self._record[key] = getattr(options, key)
        self._record["tags"] = sorted({*self._record["tags"], *options.tags})
        if preset is not None:
            self._record.update(preset=preset.name, inferred=list(preset.inferred))

    def __enter__(self) -> Run:
        self._handlers.enter_context(stop_signals(self._on_signal))
        self._around = _AROUND.get()
        _AROUND.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._handlers.close()
        _AROUND.set(self._around)
        if self._around is not None and self._signal is not None:
            self._around._signal = self._signal  # who wants a phase to end wants the whole run to end
        if error is None:
            status, reason = ("finished", None) if self._stopped is None else ("interrupted", self._stopped)
        elif isinstance(error, Interrupted):
            status, reason = "interrupted", str(error)
        elif isinstance(error, KeyboardInterrupt):
            status, reason = "interrupted", "interrupted from the keyboard between checkpoints"
        else:
            status, reason = "failed", f"{type(error).__name__}: {error}"
            if not isinstance(error, UserError):
                with suppress(OSError):  # the status is written even where the log is full
                    self.log("".join(traceback.format_exception(kind, error, trace)))
        self._close(status, reason)
        return isinstance(error, Interrupted)

    def _close(self, status: str, reason: str | None) -> None:
        """The true status, also where nothing more can be written: then the lock becomes the mark `UNWRITTEN`."""
        ended, seconds = now(), round(time.monotonic() - self._opened, 1)
        self._record.update(status=status, reason=reason, ended=ended)
        self._record["attempts"][-1].update(ended=ended, status=status, reason=reason, seconds=seconds)
        try:
            if self._metrics is not None:
                self._metrics.close()
            self._write()
        except OSError:
            with suppress(OSError):  # a rename needs no room on the disk
                os.replace(self.path / "lock", self.path / UNWRITTEN)
            raise
        finally:
            self._lock.release()

    # --- stopping at a safe point ---------------------------------------------------------------------------

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._signal is not None:  # the second one does not wait
            raise KeyboardInterrupt
        self._signal = number
        print(
            f"\n{signal.Signals(number).name}: stopping at the next safe point; once more stops at once.",
            file=sys.stderr,
        )

    def should_stop(self) -> bool:
        """Ask at every safe point. True after a signal, or when the next unit of work may pass the time limit."""
        self.budget.tick()
        self._out_of_time = self.budget.next_unit_is_too_long()
        return self.signalled or self._out_of_time

    def watch(self, units_left: Callable[[], float], say: Callable[[str], None], what: str) -> Callable[[], bool]:
        """`should_stop` that also tells, once the pace is known, how long the rest takes (where that is worth it)."""
        told = False

        def should_stop() -> bool:
            nonlocal told
            stopping, pace = self.should_stop(), self.budget.typical_unit()
            if pace is not None and not told:
                told = True
                announce(pace * units_left(), self.budget, say, what)
            return stopping

        return should_stop

    def must_stop(self) -> bool:
        """Ask anywhere in work that can be cut anywhere. True after a signal, or when its time is up."""
        return self.signalled or self.budget.over()

    @property
    def signalled(self) -> bool:
        """Somebody wants the process to end: nothing long may begin any more."""
        return self._signal is not None

    def stop_reason(self) -> str | None:
        if self._signal is not None:
            return f"stopped by {signal.Signals(self._signal).name}"
        # Asked again later the budget may think otherwise: what was kept back for a part is free once it is done.
        return "time limit" if self._out_of_time or self.budget.next_unit_is_too_long() else None

    def stop(self, reason: str | None = None) -> None:
        """The work ends here unfinished: whatever is still written, the run is an interrupted one."""
        self._stopped = self._stopped or self.stop_reason() or reason or "stopped on request"

    @property
    def stopped(self) -> bool:
        """Whether the work has ended unfinished."""
        return self._stopped is not None

    def leave(self) -> None:
        """End the run here as interrupted; call it after the last checkpoint is on disk."""
        self.stop()
        raise Interrupted(self._stopped)

    @property
    def unfinished(self) -> bool:
        """Whether it will be, or was, left before everything was done."""
        return self._stopped is not None or self.status == "interrupted"

    @property
    def status(self) -> str:
        return str(self._record["status"])

    @property
    def reason(self) -> str | None:
        """Why it is interrupted or failed."""
        reason: str | None = self._record["reason"]
        return reason

    @property
    def results(self) -> dict[str, Any]:
        """What the run found, by name."""
        return dict(self._record["results"])

    @property
    def exit_code(self) -> int:
        """0, or 128 + the signal that ended the run, as shells expect."""
        return 0 if self._signal is None else 128 + self._signal

    # --- what comes out of a run ----------------------------------------------------------------------------

    def metrics(self, resume_step: int | None = None) -> MetricsWriter:
        """The run's metrics; a resumed run passes the step of its checkpoint, later records are superseded."""
        if self._metrics is None:
            self._metrics = MetricsWriter(self.path / "metrics.jsonl", self.path / "tb", resume_step)
        return self._metrics

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    def figure(self, name: str) -> Path:
        return _inside(self.path / "figures", name)

    def media(self, name: str) -> Path:
        return _inside(self.path / "media", name)

    def table(self, name: str) -> Path:
        """A CSV file that the note shows as a table."""
        return _inside(self.path / "tables", name)

    def log(self, text: str) -> None:
        """Append to log.txt, with the time."""
        line = f"[{datetime.now().astimezone():%Y-%m-%d %H:%M:%S}] {text.rstrip()}\n"
        append(self.path / "log.txt", line.encode("utf-8", "replace"))

    def set_device(self, device: object) -> None:
        """Tell the record where the work is done, for example "cuda:0"."""
        self._record["host"]["device"] = str(device)
        self._write()

    def add_stage(self, name: str, lr: float | str | None = None, **more: Any) -> None:
        """Describe one stage of the training for the lab note; the same name again replaces it."""
        stages = [s for s in self._record["stages"] if s["name"] != name]
        self._record["stages"] = [*stages, {"name": name, "lr": lr, **more}]
        self._write()

    def set_total(self, steps: int) -> None:
        """How many steps the whole training has, so that a list can tell how far it is."""
        if self._record["total"] != steps:
            self._record["total"] = steps
            self._write()

    def add_results(self, results: Mapping[str, Any]) -> None:
        """Results for the lab note: plain values, or {"value", "low", "high", "unit", "note"}."""
        self._record["results"].update(results)
        self._write()

    def set_verdict(self, *sentences: Sentence) -> None:
        """Did it help, by how much and compared with what, what to do next: three sentences at most."""
        self._record["verdict"] = stored(sentences)
        self._write()

    @property
    def verdict(self) -> list[str]:
        """The verdict in words."""
        return texts(self._record["verdict"], str(self.path))

    def judge_by(self, judged: Judged) -> None:
        """Say which result counts, where only the work knows its name; a config's `judged_by` says it at once."""
        self._record["judged_by"] = judged.stored() if judged.results or judged.metric else None

    def add_cases(self, measure: str, cases: Mapping[Any, Mapping[str, Any]]) -> None:
        """The result `measure` case by case, as training seed (or "") -> case -> value, so that runs which met the same
        arenas, configs or starts can be compared in pairs."""
        write_cases(self.path, measure, cases)

    def _write(self) -> None:
        write_json(self.path / "run.json", self._record)


def run_path(world: str, config: Any, options: RunOptions, preset: Preset | None, root: Path = Path("runs")) -> Path:
    """Where a run lives. The default name depends on the config alone, so the same command finds it again."""
    if options.output_dir is not None:
        return options.output_dir
    if options.name is not None:
        return root / world / options.name
    label = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(preset.name).stem) if preset else "run"
    seed = getattr(config, "seed", None)
    return root / world / f"{label}{'' if seed is None else f'-s{seed}'}-{config_hash(config)[:6]}"


def detach(argv: Sequence[str], path: Path) -> int:
    """Start `marlab ARGV` (without --background) as a process of its own that logs into the run directory."""
    path.mkdir(parents=True, exist_ok=True)
    tidy(path)
    words = [w for w in argv if w != "--background"]
    with (path / "log.txt").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "marlab", *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True, env={LINE_EVERY: "60", **os.environ},
        )  # fmt: skip
    return process.pid


def _inside(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def _never_started(path: Path) -> bool:
    """A folder without run.json holds nothing but what a killed start left behind; a lock must be one of ours."""
    names = [entry.name for entry in path.iterdir()]
    known = all(LEFT_BY_A_START.fullmatch(name) for name in names)
    return known and ("lock" not in names or Lock(path / "lock").owner() is not None)


def _check_continuation(path: Path, old: dict[str, Any], config: Any, options: RunOptions) -> None:
    if Lock(path / "lock").is_held():
        Lock(path / "lock").acquire()  # says who holds it
    if not options.resume:
        state = "interrupted" if old["status"] == "running" else old["status"]
        raise UserError(f"{path} exists already ({state}); add --resume to continue it, or give another --name.")
    if old["status"] == "abandoned":
        raise UserError(f"{path} was abandoned ({old['reason'] or 'no reason given'}); give another --name.")
    stored = read_table(path / "config.json", lambda why: UserError(f"The run cannot be resumed: {why}."))
    grown = getattr(config, "MAY_GROW", ())  # settings that add to what is done and change none of it
    changed = [change for change in diff(stored, to_dict(config)) if change[0] not in grown]
    if changed:
        told = ", ".join(f"{key} was {a!r} and is {b!r} now" for key, a, b in changed[:3])
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        raise UserError(
            f"{path} was started with another config ({told}{more}); resume with the same, or give another --name."
        )
