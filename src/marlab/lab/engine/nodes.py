"""The program behind a cluster on this machine (started by cluster.py): `main` with an engine and a number of workers.

It listens on the loopback interface only and serves until its standard input ends.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import sys
import tempfile

_DASK_SETTINGS = {
    "distributed.scheduler.allowed-failures": 0,  # the engine itself retries what a dead worker leaves
    "distributed.comm.timeouts.connect": "120s",  # a busy machine takes its time
    "distributed.comm.timeouts.tcp": "120s",
    "distributed.worker.preload": ["marlab.lab.engine.no_dashboard"],
    # Tasks hold their memory in children, with limits of their own.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
}
_RAY_STORE_BYTES = 2**30
"""Shared memory for results on their way; Ray moves what does not fit to the disk."""
_RAY_STARTS = 6


def main() -> None:
    """Serve with the engine and as many workers as the two arguments say."""
    engine, workers = sys.argv[1:]
    {"dask": _serve_dask, "ray": _serve_ray}[engine](int(workers))


def _announce_and_wait(address: str, keys: dict[str, str] | None = None) -> None:
    """Print the address and the keys to it for the caller alone, then wait for standard input to end."""
    print(json.dumps({"address": address, "keys": keys or {}}), flush=True)
    while os.read(0, 4096):
        pass


def _serve_dask(workers: int) -> None:
    """A Dask scheduler and its workers."""
    import dask

    with dask.config.set(_DASK_SETTINGS):
        asyncio.run(_dask_cluster(workers))
    os._exit(0)  # Dask's exit handlers would wait for what is closed already


async def _dask_cluster(workers: int) -> None:
    from distributed import LocalCluster
    from distributed.security import Security

    from marlab.lab.engine import no_dashboard  # noqa: F401  for the scheduler in this process

    security = Security.temporary()  # keys for this cluster alone: others on this machine cannot give it work
    async with LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=None,
        worker_dashboard_address=None,
        memory_limit=0,
        silence_logs=logging.CRITICAL,
        asynchronous=True,
        security=security,
    ) as cluster:
        keys = {name: getattr(security, name) for name in ("tls_ca_file", "tls_client_cert", "tls_client_key")}
        await asyncio.to_thread(_announce_and_wait, cluster.scheduler_address, keys)


def _serve_ray(workers: int) -> None:
    """A Ray head node that is also its only worker node."""
    import ray

    from marlab.lab.engine.ray import loopback_only, quiet

    # Ray's sockets lie in there, and the path of a socket must stay below some hundred characters.
    # Ray makes its own folder open to everybody, so it lies in one that is not.
    folder = tempfile.mkdtemp(prefix="marlab-ray-", dir="/tmp")
    try:
        with quiet(), loopback_only():
            _start_ray(workers, folder)
            address = ray.get_runtime_context().gcs_address
            if not address.startswith("127.0.0.1:"):
                raise RuntimeError(f"This version of Ray opens ports to the network ({address}).")
            _announce_and_wait(address)
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def _start_ray(workers: int, folder: str) -> None:
    """Start the node; on a busy machine its parts may miss Ray's own deadlines, which cannot be set, so try again."""
    import ray
    from ray._private import utils

    from marlab.lab.engine.ray import QUIET

    # Its helpers then leave out what only a dashboard needs, and start in half the time.
    utils.get_dashboard_dependency_error = lambda: ImportError("no dashboard here")
    for left in reversed(range(_RAY_STARTS)):
        try:
            ray.init(
                "local", num_cpus=workers, num_gpus=0, include_dashboard=False,
                object_store_memory=_RAY_STORE_BYTES, _temp_dir=f"{folder}/{left}", **QUIET,
            )  # fmt: skip
            return
        except Exception:  # Ray has no class of its own for this
            ray.shutdown()
            if left == 0:
                raise
