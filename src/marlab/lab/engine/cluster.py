"""A cluster on this machine for the engines `dask` and `ray`, as a program that lives as long as its caller.

The program (nodes.py) prints the cluster's address and the keys to it as its only line and serves until its standard
input ends, which also happens when the caller is killed. A process of its own keeps the framework's event loops,
logging and signal handling out of the caller, and needs no main guard in a script.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

from marlab.lab.engine.processes import start_program
from marlab.lab.engine.wire import read_file
from marlab.lab.errors import UserError


class Cluster(NamedTuple):
    """A cluster that was started here."""

    address: str
    keys: dict[str, str]  # certificates and key to it, as texts; empty where the engine has its own secret


_CONNECT_S = 10.0
_CLOSE_S = 30.0


@contextlib.contextmanager
def local_cluster(engine: str, workers: int) -> Iterator[Cluster]:
    """Run a cluster of `workers` single-core workers on the loopback interface."""
    with tempfile.TemporaryFile() as errors:
        node = start_program(
            "marlab.lab.engine.nodes", engine, str(workers), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=errors,
        )  # fmt: skip
        assert node.stdin is not None and node.stdout is not None
        with node.stdout:
            try:
                announced = node.stdout.readline()
                if not announced:
                    lines = read_file(errors.fileno())[-4000:].decode(errors="replace").split("\n")
                    said = next((line.strip() for line in reversed(lines) if line.strip()), "it ended without a word")
                    raise UserError(f"The local {engine} cluster did not start: {said[:300]}")
                yield Cluster(**json.loads(announced))
            finally:
                _end(node)


def knock(address: str) -> None:
    """OSError unless somebody listens at [SCHEME://]HOST:PORT; other forms of an address are let through."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()


def _end(node: subprocess.Popen[bytes]) -> None:
    assert node.stdin is not None
    node.stdin.close()
    try:
        node.wait(_CLOSE_S)
    except subprocess.TimeoutExpired:
        os.killpg(node.pid, signal.SIGKILL)
        node.wait()
