"""Clusters on this machine are for their caller alone: loopback, keys or a secret, private folders, no dashboard."""

from __future__ import annotations

import stat
from pathlib import Path

import psutil
import pytest

from marlab.lab.engine.cluster import local_cluster

pytestmark = pytest.mark.long


def listening() -> list[tuple[str, str, int]]:
    """(name of the process, address, port) of everything below this process that waits for connections."""
    family = psutil.Process().children(recursive=True)
    found = [(p.name(), c) for p in family for c in p.net_connections("tcp")]
    return [(name, c.laddr.ip, c.laddr.port) for name, c in found if c.status == psutil.CONN_LISTEN]


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


def test_folders_of_ray_are_private() -> None:
    pytest.importorskip("ray")
    before = set(Path("/tmp").glob("marlab-ray-*"))
    with local_cluster("ray", 1) as cluster:
        assert cluster.address.startswith("127.0.0.1:")
        (folder,) = set(Path("/tmp").glob("marlab-ray-*")) - before
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert all(address in ("127.0.0.1", "::ffff:127.0.0.1", "::1") for _, address, _ in listening())
    assert not folder.exists()
