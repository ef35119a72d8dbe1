"""A lock file that names its owner, so that the lock of a dead process is recognised and taken over."""

from __future__ import annotations

import json
import os
import socket
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path

from marlab.lab.errors import UserError
from marlab.lab.runs.files import read_text


@dataclass(frozen=True)
class Owner:
    """A process, told apart from a later one that happens to get the same number."""

    pid: int
    host: str
    born: str  # start time of the process as its operating system tells it, "" where it does not

    @staticmethod
    def this_process() -> Owner:
        return Owner(os.getpid(), socket.gethostname(), _born(os.getpid()))

    def is_alive(self) -> bool:
        """False only when the owner is certainly gone; a process on another host counts as alive."""
        if self.host != socket.gethostname():
            return True
        born = _born(self.pid)
        return bool(born) and (not self.born or born == self.born)


def _born(pid: int) -> str:
    """Start time of a living process as text, "" if there is no such process (zombies count as gone)."""
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (OSError, ValueError):  # gone, or not the number of a process
            return ""
        return "" if fields[0] in "ZX" else fields[19]
    import psutil  # only where there is no /proc

    try:
        return str(psutil.Process(pid).create_time())
    except psutil.NoSuchProcess:
        return ""


class Lock:
    """Held by at most one living process. Dead owners are replaced without a race between two heirs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._held = False

    def owner(self) -> Owner | None:
        """Who holds the lock, alive or not; None if nobody does or the file is unreadable."""
        try:
            owner = Owner(**json.loads(read_text(self.path)))
        except (OSError, ValueError, TypeError, RecursionError):
            return None
        right = type(owner.pid) is int and isinstance(owner.host, str) and isinstance(owner.born, str)
        return owner if right else None

    def is_held(self) -> bool:
        """True if a living process holds the lock."""
        owner = self.owner()
        return owner is not None and owner.is_alive()

    def acquire(self) -> None:
        if self.path.is_dir():
            raise UserError(f"{self.path} is a folder where a lock should be; delete it.")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._remove_unfinished()
        mine = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex}")
        mine.write_text(json.dumps(asdict(Owner.this_process())), encoding="utf-8")
        try:
            for _ in range(100):
                try:
                    os.link(mine, self.path)  # atomic, and the file is complete the moment it appears
                except FileExistsError:
                    self._remove_if_stale()
                else:
                    self._held = True
                    return
            raise UserError(f"The lock {self.path} changes hands all the time; try again later.")
        finally:
            mine.unlink()

    def _remove_unfinished(self) -> None:
        """What processes left that were killed while they took the lock."""
        for path in self.path.parent.glob(f".{self.path.name}.{'[0-9a-f]' * 32}"):
            owner = Lock(path).owner()
            if owner is not None and not owner.is_alive():
                path.unlink(missing_ok=True)

    def _remove_if_stale(self) -> None:
        owner = self.owner()
        if owner is not None and owner.is_alive():
            where = "" if owner.host == socket.gethostname() else f" on {owner.host}"
            raise UserError(
                f"Process {owner.pid}{where} is working on {self.path.parent}; wait for it, or stop it first"
                + (f" (if it is certainly gone, delete {self.path})." if where else ".")
            )
        # Only one heir can move a given file away; the loser finds it gone and tries again.
        grave = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex}")
        try:
            os.rename(self.path, grave)
        except FileNotFoundError:
            return
        buried = Lock(grave).owner()
        if buried is not None and buried != owner and buried.is_alive():
            os.rename(grave, self.path)  # a new owner slipped in between the look and the move: give it back
        else:
            grave.unlink()

    def release(self) -> None:
        if self._held:
            self.path.unlink(missing_ok=True)
            self._held = False
