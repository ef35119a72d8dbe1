"""Progress on a real pseudo-terminal, into a file, and silent."""

from __future__ import annotations

import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from fcntl import ioctl

import pytest

from marlab.lab import progress
from marlab.lab.progress import Progress, Rate, duration
from tests.lab.clock import Clock
from tests.lab.engine.cases import wait_until


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    yield clock


def test_no_rate_before_the_first_second(clock: Clock) -> None:
    bar = Progress("x", total=1000, file=io.StringIO())
    with bar:
        clock.now += 0.01
        bar.advance(50)
        assert bar.rate_text() == ""
        assert bar.remaining_text() == ""
        clock.now += 1.99
        bar.advance(50)
        assert bar.rate_text() == "50 steps/s"
        assert bar.remaining_text() == "18 s left"


def test_the_rate_follows_a_change_of_pace(clock: Clock) -> None:
    rate = Rate(clock.now)
    for second in range(600):
        rate.update(clock.now + second, second * 100)
    for second in range(600, 800):
        rate.update(clock.now + second, 60_000 + (second - 600))
    assert rate.per_second(clock.now + 799) == pytest.approx(1, rel=0.05)


def test_the_rate_of_rare_steps_and_of_a_standstill(clock: Clock) -> None:
    rate = Rate(clock.now)
    for step in range(1, 6):
        rate.update(clock.now + 300 * step, step)  # one in five minutes
    assert rate.per_second(clock.now + 1500) == pytest.approx(1 / 300)
    assert rate.per_second(clock.now + 3000) == pytest.approx(1 / 600)


def test_the_rate_after_a_resume_counts_only_what_is_new(clock: Clock) -> None:
    bar = Progress("x", total=2000, done=1000, file=io.StringIO())
    with bar:
        clock.now += 10
        bar.advance(100)
        assert bar.rate_text() == "10 steps/s"
        assert bar.amount() == "1,100/2,000 steps (55%)"


def test_preparation_does_not_count_in_the_rate(clock: Clock) -> None:
    with Progress("x", total=100, file=io.StringIO()) as bar:
        clock.now += 50
        bar.begin()
        clock.now += 10
        bar.advance(20)
        assert bar.rate_text() == bar.rate_text(mean=True) == "2 steps/s"
        assert bar.summary().startswith("x: 20/100 steps (20%) in 1 min, 2 steps/s")


def test_plain_lines_at_most_every_four_seconds_and_a_last_one(clock: Clock) -> None:
    file = io.StringIO()
    with Progress("collecting", total=100, unit="worlds", file=file) as bar:
        for n in range(100):
            clock.now += 0.125
            bar.advance(1, failures=1 if n == 4 else 0)
        bar.say("a remark")
    assert file.getvalue().splitlines() == [
        "collecting: 32/100 worlds (32%), 8 worlds/s, 8.5 s left, 1 failure",
        "collecting: 64/100 worlds (64%), 8 worlds/s, 4.5 s left, 1 failure",
        "collecting: 96/100 worlds (96%), 8 worlds/s, 0.5 s left, 1 failure",
        "a remark",
        "collecting: 100/100 worlds (100%) in 12 s, 8 worlds/s, 1 failure",
    ]


def test_an_exception_is_told_in_the_last_line(clock: Clock) -> None:
    file = io.StringIO()
    with pytest.raises(KeyboardInterrupt), Progress("training", total=10, file=file) as bar:
        clock.now += 20
        bar.advance(3)
        raise KeyboardInterrupt
    assert file.getvalue().splitlines()[-1] == "training: stopped at 3/10 steps (30%) in 20 s, 0.15 steps/s"


def test_a_slow_pace_is_told_per_minute_or_hour(clock: Clock) -> None:
    with Progress("x", total=10, file=io.StringIO()) as bar:
        clock.now += 600
        bar.advance(3)
        assert bar.rate_text() == "0.3 steps/min"
        clock.now += 9 * 3600
        bar.advance(1)
        assert bar.rate_text(mean=True) == "0.436 steps/h"


def test_the_last_line_tells_the_mean_rate(clock: Clock) -> None:
    file = io.StringIO()
    with Progress("x", total=200, file=file) as bar:
        clock.now += 300
        bar.advance(100)  # slow at first, then fast
        for _ in range(100):
            clock.now += 1
            bar.advance(1)
    assert file.getvalue().splitlines()[-1] == "x: 200/200 steps (100%) in 6 min 40 s, 0.5 steps/s"


def test_an_unknown_total_and_values(clock: Clock) -> None:
    file = io.StringIO()
    with Progress("reading", unit="lines", file=file) as bar:
        clock.now += 2
        bar.advance(1_234_567)
        bar.show(loss=0.123456, stage="two")
    assert file.getvalue() == "reading: 1,234,567 lines in 2.0 s, 617,284 lines/s, loss 0.1235, stage two\n"


def test_quiet_says_nothing() -> None:
    file = io.StringIO()
    with Progress("x", total=3, quiet=True, file=file) as bar:
        bar.advance(3)
        bar.say("a remark")
    assert file.getvalue() == ""


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (8.25, "8.2 s"), (59.6, "1 min"), (185, "3 min 5 s"), (8040, "2 h 14 min"), (273_600, "3 d 4 h")],
)
def test_durations_read_well(seconds: float, text: str) -> None:
    assert duration(seconds) == text


SCRIPT = """
import time
from marlab.lab.progress import Progress
with Progress("collecting", total=40, unit="worlds") as bar:
    for n in range(40):
        time.sleep(0.03)
        bar.advance(1, failures=1 if n % 10 == 3 else 0)
        if n == 20:
            bar.say("half [way]")
            with Progress("inside", unit="things") as inner:
                for _ in range(5):
                    time.sleep(0.05)
                    inner.advance()
"""


def shown_on_terminal(columns: int, term: str = "xterm", encoding: str = "utf-8") -> str:
    """What the script writes to a pseudo-terminal of this width."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = os.environ | {"TERM": term, "PYTHONIOENCODING": encoding, "COLUMNS": "", "NO_COLOR": ""}
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stderr=theirs, stdout=theirs, env=environment):
        os.close(theirs)
        shown = b""
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # how Linux tells that the other side has closed the terminal
                break
            if not chunk:
                break
            shown += chunk
    os.close(ours)
    return shown.decode()


@pytest.mark.parametrize("columns", [80, 50])
def test_a_bar_fits_its_terminal(columns: int) -> None:
    # the inner bar lives for a moment, which a busy machine may miss
    shown = next((shown for shown in (shown_on_terminal(columns) for _ in range(4)) if "inside" in shown), "")
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    rows = [row for row in re.split(r"[\r\n]+", plain) if row.strip()]
    assert max(len(row.rstrip()) for row in rows) <= columns
    assert any("half [way]" in row for row in rows)
    assert any("inside" in row and "things" in row for row in rows)
    last = rows[-1]
    assert "40/40 worlds (100%)" in last
    if columns >= 80:
        assert "━━━━━━━━" in last
        assert "4 failures" in last
        assert re.search(r"\d/s  in \d", last)


def test_a_terminal_that_cannot_redraw_gets_lines() -> None:
    shown = shown_on_terminal(80, term="dumb")
    assert "\x1b" not in shown
    assert shown.splitlines()[-1].startswith("collecting: 40/40 worlds (100%) in ")


def test_a_terminal_without_unicode() -> None:
    assert "########" in shown_on_terminal(100, encoding="ascii")


def test_a_long_step_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(progress.LINE_EVERY, "0.3")
    file = io.StringIO()
    with Progress("outer", total=2, unit="parts", file=file), Progress("inner", total=5, file=file) as bar:
        bar.advance(1)
        wait_until(lambda: file.getvalue().count("\n") >= 3)
    lines = file.getvalue().splitlines()
    assert all(line.startswith("inner: 1/5 steps (20%)") for line in lines[:3])
    assert lines[-1].startswith("outer: 0/2 parts (0%) in ") and sum("outer" in line for line in lines) == 1


def test_a_stage_says_that_it_goes_on_and_how_long_it_took(clock: Clock) -> None:
    file = io.StringIO()
    bar = Progress("figures", file=file)
    with bar:
        clock.now += 7.0
        assert bar.line() == "figures: 7.0 s so far"
    assert file.getvalue() == "figures: 7.0 s\n"
    with Progress("figures", file=file):
        clock.now += 0.5
    assert file.getvalue() == "figures: 7.0 s\n"  # not worth a line


def test_a_closed_file_does_not_end_the_voice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(progress.LINE_EVERY, "0.1")
    gone, file = io.StringIO(), io.StringIO()
    first = Progress("first", total=2, file=gone)
    first.__enter__()
    gone.close()
    progress._Heart.spoke_at = 0.0  # its line is due
    with Progress("second", total=2, file=file):
        wait_until(lambda: "second: 0/2" in file.getvalue())
    progress._Heart.leave(first)


def test_what_was_said_in_silence_is_not_said_again_at_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(progress.LINE_EVERY, "0.6")
    file = io.StringIO()
    with Progress("slow", total=9, file=file) as bar:
        wait_until(lambda: "slow: 0/9" in file.getvalue())
        bar.advance()
        assert file.getvalue().count("slow:") == 1


def test_words_in_the_environment_are_no_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(progress.LINE_EVERY, "often")
    assert Progress("x")._line_every == 4.0
