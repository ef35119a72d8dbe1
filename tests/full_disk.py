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
from tests.commands_that_write import WRITING, Writing, assert_equal_runs, assert_nothing_is_half_written

MEGABYTES = 24
COMMANDS = ("hunt train ppo", "hunt collect", "hunt pretrain world")
STATES = {"failed", "interrupted", "planned"}
"""What a run may be called that could not be finished."""


def _work(words: list[str], log: Path) -> None:
    from marlab.cli import main

    with log.open("a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.exit(main(words))


def call(words: list[str], log: Path) -> int:
    """The exit code of a command in a process of its own."""
    process = multiprocessing.get_context("forkserver").Process(target=_work, args=(words, log))
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


def trial(number: int, name: str, writing: Writing, files: Path, smooth: Path, disk: Path, logs: Path) -> str:
    """One full disk; what happened, in a line."""
    out = disk / str(number) / "run"  # records name the folder
    left = random.Random(f"{number} {name}").randrange(int(1.1 * used(smooth)))
    filler = fill(disk, left)
    log = logs / f"{number}.log"
    words = writing.argv(files, out)
    code = call(words, log)
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
    if code != 0:
        again = [*words, *(writing.resume if (out / "run.json").exists() else ())]
        assert call(again, log) == 0, log.read_text()[-3000:]
    assert_equal_runs(out, smooth)
    shutil.rmtree(out.parent)
    return f"{number:2d} {name:<20} {left / 1e3:8.1f} kB left: {status}"


def main(disk: Path, trials: int) -> int:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m", "tmpfs", str(disk)], check=True)
    multiprocessing.get_context("forkserver").set_forkserver_preload(["tests.commands_that_write"])
    outside = disk.with_name("outside")
    smooth = {}
    for name in COMMANDS:
        files = outside / name.replace(" ", "_")
        files.mkdir(parents=True)
        WRITING[name].prepare(files)
        smooth[name] = files / "smooth" / "run"
        assert call(WRITING[name].argv(files, smooth[name]), outside / "smooth.log") == 0
    for number in range(trials):
        name = COMMANDS[number % len(COMMANDS)]
        print(trial(number, name, WRITING[name], smooth[name].parents[1], smooth[name], disk, outside), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
