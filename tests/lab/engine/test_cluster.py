"""Clusters on this machine are for their caller alone: loopback, keys or a secret, private folders, no dashboard."""

from __future__ import annotations

import re
import signal
import socket
import stat
import subprocess
from pathlib import Path

import psutil
import pytest

from marlab.lab.engine import cluster as clusters
from marlab.lab.engine.cluster import knock, local_cluster
from marlab.lab.errors import UserError


def listening() -> list[tuple[str, str, int]]:
    """(name of the process, address, port) of everything below this process that waits for connections."""
    family = psutil.Process().children(recursive=True)
    found = [(p.name(), c) for p in family for c in p.net_connections("tcp")]
    return [(name, c.laddr.ip, c.laddr.port) for name, c in found if c.status == psutil.CONN_LISTEN]


@pytest.mark.long
def test_dask_answers_only_who_has_its_keys() -> None:
    distributed = pytest.importorskip("distributed")
    with local_cluster("dask", 1) as cluster:
        assert cluster.address.startswith("tls://127.0.0.1:") and set(cluster.keys) >= {"tls_ca_file"}
        ports = listening()
        assert len(ports) == 3 and {address for _, address, _ in ports} == {"127.0.0.1"}  # scheduler, nanny, worker
        with pytest.raises((OSError, TypeError, ValueError)):
            distributed.Client(cluster.address, timeout=5)
        stranger = distributed.security.Security.temporary()
        with pytest.raises(OSError):
            distributed.Client(cluster.address, security=stranger, timeout=5)
        own = distributed.security.Security(**cluster.keys, require_encryption=True)
        with distributed.Client(cluster.address, security=own, timeout=60) as client:
            assert client.submit(sum, [1, 2]).result(timeout=120) == 3


@pytest.mark.long
def test_folders_of_ray_are_private() -> None:
    pytest.importorskip("ray")
    with local_cluster("ray", 1) as cluster:
        assert cluster.address.startswith("127.0.0.1:")
        words = [word for p in psutil.Process().children(recursive=True) for word in p.cmdline()]
        (folder,) = {Path(found[0]) for word in words if (found := re.search(r"/tmp/marlab-ray-\w+", word))}
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert all(address in ("127.0.0.1", "::ffff:127.0.0.1", "::1") for _, address, _ in listening())
    assert not folder.exists()


def test_knocking_at_an_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for address in (f"127.0.0.1:{port}", f"tcp://127.0.0.1:{port}", f"ray://localhost:{port}"):
            knock(address)
    with pytest.raises(OSError):
        knock(f"127.0.0.1:{port}")
    knock("auto")  # other forms are left to the framework


def test_a_cluster_that_does_not_start_says_why() -> None:
    said = "The local nothing cluster did not start: KeyError: 'nothing'"
    with pytest.raises(UserError, match=said), local_cluster("nothing", 1):
        pass


def test_a_program_that_does_not_leave_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    node = subprocess.Popen(["sleep", "3600"], stdin=subprocess.PIPE, start_new_session=True)
    monkeypatch.setattr(clusters, "_CLOSE_S", 0.1)
    clusters._end(node)
    assert node.returncode == -signal.SIGKILL
