"""A Dask scheduler and its workers on the loopback interface; started by engine_cluster.py."""

from __future__ import annotations

import asyncio
import logging
import os
import sys

import dask
from distributed import LocalCluster

from marlab.lab.engine.cluster import serve_until_abandoned

_SETTINGS = {
    "distributed.scheduler.allowed-failures": 0,  # the engine itself retries what a dead worker leaves
    # Tasks hold their memory in children, with limits of their own.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
}


async def _serve(workers: int) -> None:
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
    ) as cluster:
        await asyncio.to_thread(serve_until_abandoned, cluster.scheduler_address)


def main() -> None:
    """Serve with as many workers as the only argument says."""
    with dask.config.set(_SETTINGS):
        asyncio.run(_serve(int(sys.argv[1])))
    os._exit(0)  # Dask's exit handlers would wait for what is closed already
