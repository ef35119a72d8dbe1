"""How the processes of the engine talk: small JSON messages over a Unix socket, large data as open files.

A message is a four-byte length and a JSON object; open file descriptors may travel with it. Arguments and
results are never written into a socket: they sit in an anonymous file that changes hands, so a result of any
size can neither block its writer nor arrive half.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import socket
import struct
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["ok", "raised", "timeout", "memory", "died", "cancelled"]
"""How a task ended; docs/guides/engine.md explains each."""

_LENGTH = struct.Struct("!I")
_MOST_FILES = 4
"""No message carries more open files than this."""


@dataclass(frozen=True)
class FunctionSpec:
    """Where a process finds the function that a batch runs, and the surroundings it expects."""

    batch: str
    """Names one call of run_tasks; a shared cluster worker keeps batches apart by it."""
    module: str
    name: str
    """Qualified name inside the module."""
    sys_path: tuple[str, ...]
    """The caller's import path; entries that exist on the worker's machine are appended to its own."""
    directory: str
    """The caller's working directory, used where it exists."""
    hash_seed: str
    """PYTHONHASHSEED for all processes: iteration over a set of texts must not depend on the worker."""
    idle_s: float | None = None
    """Waiting processes end themselves after so long without work; None: only when their worker goes."""
    imports: tuple[str, ...] = ()
    """Further modules that the function will import: they are imported once per worker, not once per task."""


@dataclass(frozen=True)
class Job:
    """One task on its way to a child process."""

    key: str
    payload: bytes = field(repr=False)
    """Pickled (args, kwargs)."""
    time_limit_s: float | None
    memory_limit_mb: float | None


@dataclass(frozen=True)
class Outcome:
    """What became of a job, before its result is unpickled."""

    kind: Kind
    payload: bytes = field(default=b"", repr=False)
    """The pickled result when kind is "ok", else empty."""
    error: str = ""
    output: str = ""
    """The end of what the task printed."""
    seconds: float = 0.0
    peak_mb: float = 0.0
    worker: str = ""


def send_message(sock: socket.socket, message: dict[str, Any], files: Sequence[int] = ()) -> None:
    """Send one message with the open files that belong to it; the sender keeps its own descriptors."""
    body = json.dumps(message).encode()
    frame = _LENGTH.pack(len(body)) + body
    sent = socket.send_fds(sock, [frame], list(files)) if files else 0
    sock.sendall(frame[sent:])


def receive_message(sock: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Receive one message and its files, or None when the other side is gone."""
    files = array.array("i")
    # socket.recv_fds ignores its flags in Python 3.11, and without CLOEXEC a file could leak into a
    # process that another thread starts at this moment.
    cloexec = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
    try:
        head, ancillary, _, _ = sock.recvmsg(_LENGTH.size, socket.CMSG_LEN(_MOST_FILES * files.itemsize), cloexec)
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                files.frombytes(data[: len(data) - len(data) % files.itemsize])
        head += _receive_exactly(sock, _LENGTH.size - len(head)) if head else b""
        body = _receive_exactly(sock, _LENGTH.unpack(head)[0]) if head else b""
    except (ConnectionError, EOFError):
        head = body = b""
    if not body:
        close_files(files)
        return None
    for descriptor in files:
        os.set_inheritable(descriptor, False)
    return json.loads(body), list(files)


def _receive_exactly(sock: socket.socket, count: int) -> bytes:
    chunks = []
    while count > 0:
        chunk = sock.recv(count)
        if not chunk:
            raise EOFError
        chunks.append(chunk)
        count -= len(chunk)
    return b"".join(chunks)


def anonymous_file(content: bytes = b"") -> int:
    """An open file without a name, positioned at its start: in memory on Linux, on disk elsewhere."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("marlab-task")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def read_file(descriptor: int) -> bytes:
    """The whole content of an open file, wherever it is positioned."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    with open(os.dup(descriptor), "rb", buffering=0) as file:
        return file.readall() or b""


def close_files(descriptors: Iterable[int]) -> None:
    """Close descriptors, also ones that are closed already."""
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptor)
