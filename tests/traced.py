"""A process that knows every change it makes to the files below a folder, and what they are like before each of them.

Python tells of every file that is opened to be written, renamed, removed, linked or made (audit events); what is
appended with `os.write` is counted here as well, each piece in two halves. A killed process leaves what stands on the
disk, so a copy of the files before a step is what a kill at that moment leaves.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RANDOM_PART = re.compile(r"\.[a-z0-9_]{8}\.tmp$|(?<=^\.lock\.)[0-9a-f]{32}$")
"""What is different in the name of a file each time it is written."""
MIRROR = re.compile(r"(^|/)(tb/|log\.txt$)")
"""Copies for people: TensorBoard's, written by a thread of its own, and the log. They make no moment another one."""
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
TICK_NS = 50_000_000  # a file may change twice in a tick of the disk's clock
AtStep = Callable[[int, str], None]
Contents = dict[str, str]
"""Name -> mark of its content and when it was written, empty for a folder."""


class Files:
    """Contents of a folder at many moments, each file's content kept once."""

    def __init__(self, store: Path) -> None:
        self.store = store
        store.mkdir(exist_ok=True)
        self._known: dict[tuple[str, int, int, int], str] = {}

    def read(self, root: Path) -> Contents:
        found = {}
        for place, folders, names in os.walk(root):
            base = os.path.relpath(place, root)
            found.update((os.path.normpath(os.path.join(base, name)), "") for name in folders)
            for name in names:
                try:
                    found[os.path.normpath(os.path.join(base, name))] = self._mark(os.path.join(place, name))
                except FileNotFoundError:  # a helper's file that went meanwhile
                    continue
        return found

    def _mark(self, path: str) -> str:
        at = os.stat(path)
        key = (path, at.st_ino, at.st_mtime_ns, at.st_size)
        if key in self._known and time.time_ns() - at.st_mtime_ns > TICK_NS:
            return f"{self._known[key]} {at.st_mtime_ns}"
        content = Path(path).read_bytes()
        mark = hashlib.blake2b(content, digest_size=16).hexdigest()
        if not (self.store / mark).exists():
            (self.store / mark).write_bytes(content)
        self._known[key] = mark
        return f"{mark} {at.st_mtime_ns}"

    def restore(self, root: Path, files: Contents) -> None:
        """Make the empty folder `root` as it was."""
        for name, mark in sorted(files.items()):  # a folder comes before what is in it
            if mark:
                content, written_ns = mark.split()
                (root / name).write_bytes((self.store / content).read_bytes())
                os.utime(root / name, ns=(int(written_ns), int(written_ns)))
            else:
                (root / name).mkdir(parents=True, exist_ok=True)


def shape(files: Contents) -> str:
    """What tells one moment from another: not random parts of names, nor what is in files that were never finished."""
    named = set()
    for name, mark in files.items():
        if not MIRROR.search(name):
            plain = re.sub(RANDOM_PART, "", name)
            named.add((plain, mark.partition(" ")[0] if plain == name else "unfinished"))
    return hashlib.blake2b(repr(sorted(named)).encode(), digest_size=16).hexdigest()


class Tracer:
    """Counts the steps of this process below `root`, and calls `at(number, what)` before each of them."""

    def __init__(self, root: Path, at: AtStep) -> None:
        self.root, self.at, self.count = f"{root.resolve()}{os.sep}", at, 0
        self.made: set[str] = set()  # every file that a step was about
        self._busy = threading.local()
        self._torn: dict[int, bool] = {}
        self._pid, self._write = os.getpid(), os.write

    def start(self) -> None:
        os.write = self._in_halves  # type: ignore[assignment]
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if getattr(self._busy, "now", False) or os.getpid() != self._pid:
            return
        if event == "open":
            path, _, flags = args
            if not isinstance(path, int) and isinstance(flags, int) and flags & WRITES:
                self._step("append" if flags & os.O_APPEND else "open", path)
        elif event in ("os.rename", "os.link"):
            self._step(event[3:], args[0], args[1])
        elif event == "os.symlink":
            self._step("symlink", args[1])
        elif event in ("os.mkdir", "os.remove", "os.rmdir"):
            self._step(event[3:], _in_folder(args[0], args[-1]))
        elif event == "os.truncate":
            self._step("truncate", args[0])

    def _step(self, what: str, *paths: Any) -> None:
        full = [_of(path) if isinstance(path, int) else os.path.realpath(os.fsdecode(path)) for path in paths]
        if not any(path.startswith(self.root) for path in full) or all(MIRROR.search(path) for path in full):
            return
        self._busy.now = True
        try:
            self.made.update(path.removeprefix(self.root) for path in full)
            self.at(self.count, " ".join([what, *(path.removeprefix(self.root) for path in full)]))
            self.count += 1
        finally:
            self._busy.now = False

    def _in_halves(self, handle: int, data: Any) -> int:
        """In place of `os.write`, which may write less than it was given."""
        if os.getpid() == self._pid and _of(handle).startswith(self.root):
            self._step("write", handle)
            self._torn[handle] = len(data) > 1 and not self._torn.get(handle)
            if self._torn[handle]:
                return self._write(handle, memoryview(data)[: len(data) // 2])
        return self._write(handle, data)


def _in_folder(path: Any, folder: Any) -> Any:
    """A path that is meant from an open folder, as in `shutil.rmtree`."""
    return os.path.join(_of(folder), os.fsdecode(path)) if isinstance(folder, int) and folder >= 0 else path


def _of(handle: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{handle}")
    except OSError:
        return ""


def recorder(root: Path, files: Files, out: Path) -> AtStep:
    """What to do before each step so that `out` tells afterwards what a kill there would have left."""
    handle = out.open("a")

    def at(number: int, what: str) -> None:
        handle.write(json.dumps({"number": number, "what": what, "files": files.read(root)}) + "\n")
        handle.flush()

    return at


def killer(before: int) -> AtStep:
    """End this process before step number `before`, as nothing can be ended more suddenly."""

    def at(number: int, what: str) -> None:
        if number == before:
            os.kill(os.getpid(), signal.SIGKILL)

    return at
