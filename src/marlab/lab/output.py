"""Standard output and errors whose reader may leave, or which were never open: a command goes on without them."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

GONE = (errno.EPIPE, errno.EIO, errno.EBADF)
"""The reader of a pipe left; the terminal was closed; the stream was closed before the program began."""


class _Stream(io.FileIO):
    """Drops what nobody can read any more."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data) or 0
        except OSError as error:
            if error.errno not in GONE:
                raise
            return memoryview(data).nbytes


def open_missing_streams() -> None:
    """Give a program that was started with closed streams something to write to.

    Otherwise the next files that it opens get the numbers of the streams, and messages of libraries end up in them.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115  open as long as the program runs
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


@contextmanager
def readers_may_leave() -> Iterator[None]:
    """What is printed here goes nowhere once its reader has left, as in `marlab fish train | head`."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _without_reader(sys.stdout), _without_reader(sys.stderr)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        sys.stdout, sys.stderr = before


def _without_reader(stream: TextIO) -> TextIO:
    with suppress(OSError, ValueError):
        stream.flush()
    try:
        number = stream.fileno()
    except (OSError, ValueError):  # a test or a notebook has put something else in its place
        return stream
    raw = io.BufferedWriter(_Stream(number, "wb", closefd=False))
    buffered = stream is sys.stdout and not stream.isatty()
    return io.TextIOWrapper(raw, encoding=stream.encoding, errors="replace", line_buffering=not buffered)


def on_a_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def agreed(question: str) -> bool:
    """A yes or a no from the terminal: Enter is a yes, the end of the input a no."""
    try:
        return not input(f"{question} [Y/n] ").strip().lower().startswith("n")
    except EOFError:
        print()
        return False
