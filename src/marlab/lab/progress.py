"""Progress of anything longer than a few seconds: a bar on a terminal, plain lines elsewhere, or nothing.

It is used as a context manager::

    with Progress("collecting", total=1000, unit="worlds") as bar:
        for result in results:
            bar.advance(1, failures=0 if result.ok else 1)

Where there is no terminal an open bar says a line whenever nothing was said for a few seconds, also while one step of
it takes minutes: nobody should wonder whether the program still lives. `stage` is for work that counts no steps.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from time import monotonic as _real_monotonic
from typing import TextIO

from rich.console import Console
from rich.progress import Progress as RichProgress
from rich.progress import ProgressColumn, TaskID
from rich.progress import Task as RichTask
from rich.text import Text

LINE_EVERY = "MARLAB_LINE_EVERY"
"""Environment variable: seconds between plain lines. A process in the background needs fewer of them."""
_LINE_EVERY_S = 4.0
_SHORT_S = 1.0
"""A stage that was over sooner is not worth a line."""
_TRUST_AFTER_S = 1.0
"""No rate is shown before: the first steps after a start say nothing about the rest."""
_WINDOW_S = 60.0
_WINDOW_SAMPLES = 10
_SAMPLE_EVERY_S = 0.5
_LONGEST_BAR, _SHORTEST_BAR = 40, 8
"""Width of the drawn bar in characters; where even the shortest has no room, the numbers stand alone."""


class Rate:
    """Speed over about the last minute, longer when steps are rare, so that it follows a change of pace."""

    def __init__(self, now: float, done: float = 0) -> None:
        self._start = now
        self._samples: deque[tuple[float, float]] = deque([(now, done)])  # (time, units done)
        self._done = done

    def update(self, now: float, done: float) -> None:
        """Take note that `done` units are finished at time `now`."""
        self._done = done
        if now - self._samples[-1][0] < _SAMPLE_EVERY_S:
            return
        self._samples.append((now, done))
        while len(self._samples) > _WINDOW_SAMPLES and now - self._samples[1][0] > _WINDOW_S:
            self._samples.popleft()

    def per_second(self, now: float) -> float | None:
        """Units per second, or None while it is too early to tell."""
        since, before = self._samples[0]
        if now - self._start < _TRUST_AFTER_S or self._done <= before:
            return None
        return (self._done - before) / (now - since)


class Progress:
    """Shows how far something is. Several may be open at once; on a terminal they share the screen."""

    def __init__(
        self, label: str, total: float | None = None, unit: str = "steps", done: float = 0, quiet: bool = False,
        file: TextIO | None = None,
    ) -> None:  # fmt: skip
        """`total`: units of work, None if unknown; `done`: units finished before (a resumed run)."""
        self.label = label
        self.total = total
        self.unit = unit
        self.done = self._done_before = done
        self.counters: dict[str, float] = {}
        self.values: dict[str, str] = {}
        self._file = file if file is not None else sys.stderr
        self._quiet = quiet
        self._screen: _Screen | None = None
        self._lock = threading.Lock()
        self._started = self._last_line = time.monotonic()
        self._line_every = _seconds_between_lines()
        self.begin()

    def __enter__(self) -> Progress:
        self._started = self._last_line = time.monotonic()
        self.begin()
        if not self._quiet:
            self._screen = _Screen.join(self, self._file)
            if self._screen is None:
                _Heart.join(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if self._screen is not None:
            self._screen.leave(self)
            self._screen = None
        elif not self._quiet:
            _Heart.leave(self)
            if self.counts or self.elapsed() >= _SHORT_S:
                self._print(self.summary(stopped=kind is not None))

    def begin(self) -> None:
        """Say that the preparation is over (a cluster is up, a model compiled): rates count from now on."""
        with self._lock:
            self._rate_from, self._done_before = time.monotonic(), self.done
            self._rate = Rate(self._rate_from, self.done)

    def advance(self, units: float = 1, **counters: float) -> None:
        """Count `units` more as done, and add to counters that are shown when they are not zero."""
        with self._lock:
            self.done += units
            for name, count in counters.items():
                self.counters[name] = self.counters.get(name, 0) + count
            now = time.monotonic()
            self._rate.update(now, self.done)
            line_due = self._screen is None and not self._quiet and now - self._last_line >= self._line_every
            if line_due:
                self._last_line = now
        if line_due:
            self._print(self.line())

    def show(self, **values: float | str) -> None:
        """Show the newest value of something beside the bar, such as a loss."""
        for name, value in values.items():
            self.values[name] = f"{value:.4g}" if isinstance(value, float) else str(value)

    def say(self, text: str) -> None:
        """Print a line without disturbing the bar; says nothing in quiet mode."""
        if self._screen is not None:
            self._screen.console.print(text, markup=False, highlight=False)
        elif not self._quiet:
            self._print(text)

    def line(self) -> str:
        """The state as one plain line."""
        if not self.counts:
            return f"{self.label}: {duration(self.elapsed())} so far"
        parts = [self.amount(), self.rate_text(), self.remaining_text(), *self.extras()]
        return f"{self.label}: " + ", ".join(part for part in parts if part)

    def summary(self, stopped: bool = False) -> str:
        """The last line: how much in what time."""
        if not self.counts:
            return f"{self.label}: {'stopped after ' if stopped else ''}{duration(self.elapsed())}"
        parts = [f"{self.amount()} in {duration(self.elapsed())}", self.rate_text(mean=True), *self.extras()]
        return f"{self.label}: {'stopped at ' if stopped else ''}" + ", ".join(part for part in parts if part)

    @property
    def counts(self) -> bool:
        """Whether there is something to count, and not only time that passes."""
        return bool(self.total) or self.done > 0

    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    def amount(self) -> str:
        """Units done, of how many, and the share; nothing where nothing is counted."""
        if not self.counts:
            return ""
        if not self.total:
            return f"{self.done:,.15g} {self.unit}"
        return f"{self.done:,.15g}/{self.total:,.15g} {self.unit} ({100 * self.done / self.total:.0f}%)"

    def finished(self) -> bool:
        """Whether all of the work is done."""
        return self.total is not None and self.done >= self.total

    def rate_text(self, mean: bool = False) -> str:
        """Speed of late, or the mean since the start, in units that read well; empty while unknown."""
        rate = self._rate.per_second(time.monotonic())
        if rate is None:
            return ""
        if mean:
            rate = (self.done - self._done_before) / (time.monotonic() - self._rate_from)
        paces = ((rate, "s"), (rate * 60, "min"), (rate * 3600, "h"))
        amount, unit = next((pace for pace in paces if pace[0] >= 0.1), paces[-1])
        return f"{amount:,.0f} {self.unit}/{unit}" if amount >= 100 else f"{amount:.3g} {self.unit}/{unit}"

    def remaining_text(self) -> str:
        """Estimated time left; empty while unknown."""
        rate = self._rate.per_second(time.monotonic())
        if rate is None or not self.total or self.finished():
            return ""
        return f"{duration((self.total - self.done) / rate)} left"

    def extras(self) -> list[str]:
        """Counters that are not zero and the newest values, as texts."""
        counters = [
            f"{count:,.15g} {name.removesuffix('s') if count == 1 else name}"
            for name, count in self.counters.items()
            if count
        ]
        return counters + [f"{name} {value}" for name, value in self.values.items()]

    def _print(self, text: str) -> None:
        _Heart.spoke_at = _real_monotonic()
        print(text, file=self._file, flush=True)


def stage(label: str, quiet: bool = False) -> Progress:
    """Something that takes a while and counts no steps: drawing figures, loading a model."""
    return Progress(label, quiet=quiet)


def _seconds_between_lines() -> float:
    try:
        return max(0.1, float(os.environ.get(LINE_EVERY, _LINE_EVERY_S)))
    except ValueError:
        return _LINE_EVERY_S


class _Heart:
    """Makes the newest open bar say its line where no terminal shows it and nothing was said for a while."""

    spoke_at = 0.0
    _bars: list[Progress] = []  # noqa: RUF012
    _lock = threading.Lock()
    _beat = threading.Event()
    _alone = True

    @classmethod
    def join(cls, bar: Progress) -> None:
        with cls._lock:
            if not cls._bars:
                cls.spoke_at = max(cls.spoke_at, _real_monotonic() - bar._line_every / 2)
            cls._bars.append(bar)
            if cls._alone:
                cls._alone = False
                threading.Thread(target=cls._live, name="progress", daemon=True).start()

    @classmethod
    def leave(cls, bar: Progress) -> None:
        with cls._lock:
            if bar in cls._bars:
                cls._bars.remove(bar)
        cls._beat.set()

    @classmethod
    def _live(cls) -> None:
        while True:
            cls._beat.wait(0.2)
            cls._beat.clear()
            with cls._lock:
                if not cls._bars:
                    cls._alone = True
                    return
                bar = cls._bars[-1]
            if _real_monotonic() - cls.spoke_at >= bar._line_every:
                with suppress(ValueError, OSError):  # the file was closed under us
                    bar._last_line = time.monotonic()  # the next step need not say it once more
                    bar._print(bar.line())


def duration(seconds: float) -> str:
    """A length of time for people: 8.2 s, 3 min 5 s, 2 h 14 min, 3 d 4 h."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, unit, smaller_size, smaller in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // smaller_size
            return f"{whole // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"


class _Screen:
    """The live area at the bottom of a terminal, shared by all bars that are open there."""

    _open: dict[int, _Screen] = {}  # noqa: RUF012  by file descriptor of the terminal
    _lock = threading.Lock()

    def __init__(self, file: TextIO) -> None:
        self.console = Console(file=file)
        # A row reads its bar when it is drawn, four times a second: advancing costs no drawing.
        self._live = RichProgress(_Row(self.console), console=self.console, refresh_per_second=4)
        self._rows: dict[Progress, TaskID] = {}

    @classmethod
    def join(cls, bar: Progress, file: TextIO) -> _Screen | None:
        """Open a row for a bar; None if `file` is not a terminal that can redraw."""
        if not file.isatty() or os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
            return None
        with cls._lock:
            screen = cls._open.get(file.fileno())
            if screen is None:
                screen = cls._open[file.fileno()] = cls(file)
                screen._live.start()
            screen._rows[bar] = screen._live.add_task(bar.label, total=None, bar=bar)
            return screen

    def leave(self, bar: Progress) -> None:
        """Close a row. The last one stays on the screen in its final state."""
        with self._lock:
            row = self._rows.pop(bar)
            if self._rows:
                self._live.remove_task(row)
                return
            self._live.stop()
            del self._open[self.console.file.fileno()]


class _Row(ProgressColumn):
    """One bar on one line: numbers always, and a bar as long as the terminal leaves room for."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def render(self, task: RichTask) -> Text:
        """Lay out the line; Rich calls this for each frame."""
        bar: Progress = task.fields["bar"]
        rate = bar.rate_text(mean=bar.finished()).replace(f" {bar.unit}", "")
        so_far = f"in {duration(bar.elapsed())}" if bar.finished() else f"{duration(bar.elapsed())} so far"
        pace = [rate, bar.remaining_text() or so_far]
        texts = [(bar.amount(), ""), *((part, "cyan") for part in pace), *((t, "yellow") for t in bar.extras())]
        numbers = Text("  ").join(Text(text, style) for text, style in texts if text)
        label = Text(f"{bar.label}  ", style="bold")
        room = min(_LONGEST_BAR, self._console.width - len(label) - len(numbers) - 3)
        line = Text(no_wrap=True, overflow="ellipsis")
        if bar.total and room >= _SHORTEST_BAR:
            return line.append_text(label).append_text(self._drawn(bar.done / bar.total, room)).append(numbers)
        return line.append_text(label).append_text(numbers)

    def _drawn(self, share: float, width: int) -> Text:
        full, empty = ("━", "─") if self._console.encoding.startswith("utf") else ("#", "-")
        filled = round(min(1.0, max(0.0, share)) * width)
        return Text.assemble((full * filled, "green"), (empty * (width - filled), "bright_black"), "  ")
