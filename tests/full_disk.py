"""A small disk that is filled up on purpose, and commands that write to it. A program, started by test_full_disk.py:

    unshare --user --map-root-user --mount python -m tests.full_disk FOLDER TRIALS

In a mount namespace of its own it mounts a tmpfs of some megabytes at FOLDER, so nothing else can be harmed. Each trial
leaves a random part of the room that a command needs, lets it fail, looks at what it left, makes room and goes on.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

from marlab.lab.runs.records import read_run
from tests.commands_that_write import WRITING, Writing, assert_nothing_is_half_written
from tests.equal_files import differences

MEGABYTES = 24
COMMANDS = ("hunt train ppo", "hunt collect", "hunt pretrain world")
STATES = {"failed", "interrupted", "planned"}
"""What a run may be called that could not be finished."""


def _work(words: list[str], folder: Path, log: Path) -> None:
    from marlab.cli import main

    os.chdir(folder)
    with log.open("a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.exit(main(words))


def call(writing: Writing, folder: Path, log: Path) -> int:
    """The exit code of a command in a process of its own."""
    process = multiprocessing.get_context("forkserver").Process(target=_work, args=(writing.argv(folder), folder, log))
    process.start()
    process.join(280)
    assert process.exitcode is not None, "it hangs"
    return process.exitcode


def room(disk: Path) -> int:
    found = os.statvfs(disk)
    return found.f_bavail * found.f_frsize


def fill(disk: Path, left: int) -> Path:
    """A file that leaves so many bytes."""
    filler = disk / "filler"
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, room(disk) - left))
    return filler


def used(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*"))


def trial(number: int, name: str, writing: Writing, smooth: Path, disk: Path, logs: Path) -> str:
    """One full disk; what happened, in a line."""
    folder = disk / str(number)
    folder.mkdir()
    writing.prepare(folder)
    out = folder / writing.out
    left = random.Random(f"{number} {name}").randrange(int(1.1 * used(smooth / writing.out)))
    filler = fill(disk, left)
    log = logs / f"{number}.log"
    code = call(writing, folder, log)
    status = read_run(out).status if (out / "run.json").exists() else "not begun"
    said = log.read_text()
    assert "Traceback" not in said, said[-3000:]
    if code == 0:
        assert status == "finished", status
    else:
        assert code == 2 and status in {*STATES, "not begun"}, (code, status, said[-2000:])
        assert "No space left on device" in said or "disk is full" in said, said[-2000:]
    assert_nothing_is_half_written(out) if out.exists() else None
    filler.unlink()
    assert code == 0 or call(writing, folder, log) == 0, log.read_text()[-3000:]
    assert differences(folder, smooth) == []
    shutil.rmtree(folder)
    return f"{number:2d} {name:<20} {left / 1e3:8.1f} kB left: {status}"


def main(disk: Path, trials: int) -> int:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m", "tmpfs", str(disk)], check=True)
    multiprocessing.get_context("forkserver").set_forkserver_preload(["tests.commands_that_write"])
    outside = disk.with_name("outside")
    smooth = {}
    for name in COMMANDS:
        smooth[name] = outside / name.replace(" ", "_")
        smooth[name].mkdir(parents=True)
        WRITING[name].prepare(smooth[name])
        assert call(WRITING[name], smooth[name], outside / "smooth.log") == 0
    for number in range(trials):
        name = COMMANDS[number % len(COMMANDS)]
        print(trial(number, name, WRITING[name], smooth[name], disk, outside), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
