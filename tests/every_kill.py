"""Every command that writes, killed before and after each of its writes, gone on with, and compared with an uncut run.

    python -m tests.every_kill [COMMAND ...] [--share 0.1] [--seed 0]

A tiny run of the command is forked from this process, which has imported what it needs, so that a run costs its work
and no imports. `tests/traced.py` keeps what a kill before each write would leave; each of these folders is put back in
turn, and the command goes on there as its pages say: with --resume once there is a run. What lasts must then be what
the uncut run has. Some kills are real: the process ends itself there with SIGKILL. Of the moments at which a file is
half written under its temporary name, which differ in nothing that is read, a quarter is tried.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import marlab.fish.measure.config  # noqa: F401  before episodes become short: its defaults know only long ones
from marlab.fish.sea import constants

constants.EPISODE_STEPS = 40
from tests.commands_that_write import WRITING  # noqa: E402
from tests.equal_files import differences  # noqa: E402
from tests.traced import MIRROR, RANDOM_PART, Contents, Files, Tracer, killer, recorder, shape  # noqa: E402

LONGEST_S = 300.0
REAL, UNFINISHED = 0.05, 0.25
FEW = 12  # moments that are all tried, whatever the share
UNEQUAL = 72
HEAD = f"{'command':<24} {'writes':>7} {'moments':>8} {'kills':>6} {'real':>5} {'equal':>6}"


@dataclass
class Found:
    """What came out of the kills of one command."""

    name: str
    writes: int = 0  # steps that change what is on the disk
    moments: int = 0  # different folders that a kill between them can leave
    kills: int = 0
    real: int = 0
    unequal: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def line(self) -> str:
        equal = self.kills - len(self.unequal)
        counts = f"{self.writes:7d} {self.moments:8d} {self.kills:6d} {self.real:5d} {equal:6d}"
        return f"{self.name:<24} {counts} {self.seconds:8.1f} s of CPU"


def fork(work: Callable[[], int], root: Path, log: Path) -> int:
    """The exit code of `work` in a process of its own, or minus the signal that ended it; what it says is in `log`."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            os.chdir(root)
            with log.open("ab") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            code = work()
            sys.stdout.flush()
            sys.stderr.flush()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    until = time.monotonic() + LONGEST_S * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    while time.monotonic() < until:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return -1000


def call(words: list[str], shrink: Callable[[], None]) -> int:
    """`marlab WORDS` here, with random numbers that nobody has seeded and a disk that is not waited for."""
    import numpy as np
    import torch
    from matplotlib.figure import Figure

    from marlab.cli import main
    from marlab.lab.report import style
    from marlab.lab.runs import record

    random.seed()
    np.random.seed()
    torch.seed()
    os.fsync = lambda handle: None  # type: ignore[assignment]
    record._commit = lambda: "unknown"
    style.settle = lambda figure: None  # type: ignore[assignment, misc]
    Figure.savefig = _what_is_drawn  # type: ignore[method-assign]
    shrink()
    return main(words)


def _what_is_drawn(figure: Any, target: Any, format: str, **how: Any) -> None:
    """In place of a picture what it shows; painting takes many times as long as all else."""
    drawn = [axes.get_title() for axes in figure.axes]
    for axes in figure.axes:
        drawn += [line.get_xydata().tolist() for line in axes.lines]
        drawn += [patch.get_path().vertices.tolist() for patch in axes.patches]
        drawn += [collection.get_offsets().tolist() for collection in axes.collections]
        drawn += [image.get_array().tolist() for image in axes.images]
        drawn += [text.get_text() for text in axes.texts]
    text = f"<svg>{drawn}</svg>"
    target.write(text) if hasattr(target, "write") else Path(target).write_text(text)


class Campaign:
    """All kills of one command, in a folder of its own."""

    def __init__(self, name: str, home: Path) -> None:
        self.name, self.writing, self.home = name, WRITING[name], home
        self.root = home / "work"  # the same for all, because records name it
        self.log, self.store, self.found = home / "log.txt", Files(home / "contents"), Found(name)

    def run(self, share: float, seed: int) -> Found:
        began, rng = sum(os.times()[:4]), random.Random(f"{self.name} {seed}")
        start = self._prepare()
        steps = self._uncut(start)
        shutil.copytree(self.root, self.home / "uncut")
        moments = list({shape(step["files"]): step for step in reversed(steps)}.values())[::-1]
        self.found.writes, self.found.moments = len(steps) - 1, len(moments)
        share = 1.0 if len(moments) <= FEW else share * self.writing.share
        for step in moments:
            unfinished = any(RANDOM_PART.search(name) for name in step["files"])
            if rng.random() >= share * (UNFINISHED if unfinished else 1.0):
                continue
            self.found.kills += 1
            shutil.rmtree(self.root)
            self.root.mkdir()
            if step["what"] != "end" and rng.random() < REAL:
                self.store.restore(self.root, start)
                self._kill(step["number"])
            else:
                self.store.restore(self.root, step["files"])
            self._go_on(f"{step['number']} {step['what']}")
        self.found.seconds = sum(os.times()[:4]) - began
        return self.found

    def _prepare(self) -> Contents:
        """What the command needs, made by a process of its own."""
        self.root.mkdir()
        made = self.home / "made.json"

        def work() -> int:
            self.writing.prepare(self.root)
            made.write_text(json.dumps(self.store.read(self.root)))
            return 0

        assert fork(work, self.root, self.log) == 0, self._said()
        start: Contents = json.loads(made.read_text())
        return start

    def _uncut(self, start: Contents) -> list[dict[str, Any]]:
        """The run that nobody disturbs: every step of it, with what was there before it."""
        steps, modules = self.home / "steps.jsonl", self.home / "modules.txt"

        def work() -> int:
            words = self.writing.argv(self.root)
            tracer = Tracer(self.root, recorder(self.root, self.store, steps))
            tracer.start()
            code = call(words, self.writing.shrink)
            modules.write_text("\n".join(sys.modules))
            tracer.at(tracer.count, "end")
            unseen = [name for name in self.store.read(self.root) if name not in start and not MIRROR.search(name)]
            unseen = [name for name in unseen if not any(part in tracer.made for part in _with_parents(name))]
            assert not unseen, f"written in a way that nothing tells of: {unseen}"
            return code

        code = fork(work, self.root, self.log)
        assert code in self.writing.codes, f"{code}: {self._said()}"
        for module in modules.read_text().splitlines():  # for all that follow
            with contextlib.suppress(Exception):
                importlib.import_module(module)
        return [json.loads(line) for line in steps.read_text().splitlines()]

    def _kill(self, number: int) -> None:
        """Run it again up to a step, where it ends itself."""

        def work() -> int:
            words = self.writing.argv(self.root)
            Tracer(self.root, killer(number)).start()
            return call(words, self.writing.shrink)

        code = fork(work, self.root, self.log)
        assert code == -9, f"the kill before step {number} did not come: {code}: {self._said()}"
        self.found.real += 1

    def _go_on(self, label: str) -> None:
        """After a kill: call the command again and compare."""
        log, verdict = self.home / "went_on.txt", self.home / "differences.txt"
        log.unlink(missing_ok=True)

        def work() -> int:
            code = call(self.writing.argv(self.root), self.writing.shrink)
            if code not in self.writing.codes:
                print(f"it went on with exit code {code}")
                return 71
            found = differences(self.root, self.home / "uncut")
            verdict.write_text("; ".join(found))
            return UNEQUAL if found else 0

        code = fork(work, self.root, log)
        if code != 0:
            said = (verdict if code == UNEQUAL else log).read_text(errors="replace")
            self.found.unequal.append(f"{label}: {code}: {said[-700:]}")

    def _said(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]


def _with_parents(name: str) -> list[str]:
    return [name, *(str(parent) for parent in Path(name).parents)]


def campaign(name: str, share: float, seed: int) -> Found:
    memory = Path("/dev/shm")
    home = Path(tempfile.mkdtemp(prefix="every-kill-", dir=memory if os.access(memory, os.W_OK) else None))
    try:
        return Campaign(name, home).run(share, seed)
    except AssertionError as error:
        return Found(name, unequal=[f"it could not be tried: {error}"])
    finally:
        shutil.rmtree(home, ignore_errors=True)


def warm() -> None:
    """Import what every command needs, on one thread: a process of several must not fork."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    torch.set_num_threads(1)
    for name in ("marlab.cli", "torch.utils.tensorboard", "matplotlib.figure", "pyarrow.parquet"):
        importlib.import_module(name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="commands as in tests/commands_that_write.py; by default all")
    parser.add_argument("--share", type=float, default=1.0, help="of the moments that are tried")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    warm()
    print(HEAD)
    found = []
    for name in args.names or WRITING:
        found.append(campaign(name, args.share, args.seed))
        print("\n    ".join([found[-1].line(), *found[-1].unequal]), flush=True)
    whole = Found("all", *(sum(getattr(one, key) for one in found) for key in ("writes", "moments", "kills", "real")))
    whole.unequal, whole.seconds = [bad for one in found for bad in one.unequal], sum(one.seconds for one in found)
    print(whole.line())
    return 1 if whole.unequal else 0


if __name__ == "__main__":
    sys.exit(main())
