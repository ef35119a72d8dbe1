"""Commands that are killed again and again.

`run_with_kills` starts one, kills it with SIGKILL at random moments and goes on with --resume until it ends by itself.
A command runs in a process of its own that is forked from a server with torch already loaded, so that ten kills cost
ten pieces of work and not ten imports. Most kills wait until something new stands in the run's folder and come a random
moment later; every fourth comes soon after the start, wherever that is.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

PRELOAD = ["marlab.cli", "torch", "torch.utils.tensorboard", "matplotlib.figure"]
"""What every command imports once it works; loaded once for all kills."""
LONGEST_S = 300.0
"""A command that has not ended or written anything after so long is stuck (on a machine that does nothing else)."""


class Killed(NamedTuple):
    """How it went."""

    kills: int  # processes that were killed while they worked
    attempts: int  # processes that were started


def run_with_kills(
    words: Sequence[str], folder: Path, *, kills: int = 10, seed: int = 0, spread_s: float = 0.3,
    resume: Sequence[str] = ("--resume",), preload: Sequence[str] = (), after_kill: Callable[[], None] = lambda: None,
) -> Killed:  # fmt: skip
    """`marlab WORDS` whose run is `folder`, killed up to `kills` times and then left to end with exit code 0.

    spread_s: a kill comes up to so many seconds after the folder changed. preload: modules worth loading once.
    after_kill: looks at what a kill left behind. The output of all processes is appended to FOLDER.log.
    """
    rng, killed, attempts = random.Random(seed), 0, 0
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*PRELOAD, *preload])  # takes effect where no server runs yet
    while True:
        more = list(resume) if _started(folder) else []
        before = _contents(folder)
        process = context.Process(target=_work, args=([*words, *more], folder.with_name(f"{folder.name}.log")))
        process.start()
        attempts += 1
        if killed >= kills:
            process.join(_longest())
            assert process.exitcode == 0, f"exit code {process.exitcode} after {killed} kills: {_tail(folder)}"
            return Killed(killed, attempts)
        if rng.random() >= 0.25:
            _wait(process, folder, before)
        process.join(rng.random() * spread_s)
        if process.exitcode is None:
            os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
        if process.exitcode == -signal.SIGKILL:
            killed += 1
            after_kill()
        else:  # it ended before its kill
            assert process.exitcode == 0, f"exit code {process.exitcode} after {killed} kills: {_tail(folder)}"
            return Killed(killed, attempts)


def _work(words: list[str], log: Path) -> None:
    """The killed process: the command, its output in a file."""
    from marlab.cli import main

    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.exit(main(words))


def _started(folder: Path) -> bool:
    """Whether --resume is understood: the run's record is there."""
    return (folder / "run.json").exists()


def _contents(folder: Path) -> dict[str, int]:
    """Sizes of the files that hold work; the record and the lock change with every start."""
    found = {}
    for file in folder.rglob("*"):
        if file.name not in ("run.json", "lock", "log.txt") and not file.name.startswith("."):
            try:
                found[str(file)] = file.stat().st_size
            except FileNotFoundError:  # renamed while we looked
                continue
    return found


def _wait(process: multiprocessing.process.BaseProcess, folder: Path, before: dict[str, int]) -> None:
    """Until the folder holds something new or the process ends."""
    deadline = time.monotonic() + _longest()
    while process.is_alive() and _contents(folder) == before:
        assert time.monotonic() < deadline, "nothing was written and nothing ended"
        time.sleep(0.01)


def _longest() -> float:
    return LONGEST_S * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def _tail(folder: Path) -> str:
    log = folder.with_name(f"{folder.name}.log")
    return log.read_text(errors="replace")[-2000:] if log.exists() else "it said nothing"
