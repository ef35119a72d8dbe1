"""A Ray cluster on the loopback interface; started by engine_cluster.py."""

from __future__ import annotations

import shutil
import sys
import tempfile

import ray

from marlab.lab.engine.cluster import serve_until_abandoned
from marlab.lab.engine.ray import QUIET, loopback_only, quiet

_STORE_BYTES = 2**30
"""Shared memory for results on their way; Ray moves what does not fit to the disk."""


def main() -> None:
    """Serve with as many workers as the only argument says."""
    # Ray's sockets lie in there, and the path of a socket must stay below some hundred characters.
    folder = tempfile.mkdtemp(prefix="marlab-ray-", dir="/tmp")
    try:
        with quiet(), loopback_only():
            ray.init(
                "local",
                num_cpus=int(sys.argv[1]),
                num_gpus=0,
                include_dashboard=False,
                object_store_memory=_STORE_BYTES,
                _temp_dir=folder,
                **QUIET,
            )
            address = ray.get_runtime_context().gcs_address
            if not address.startswith("127.0.0.1:"):
                raise RuntimeError(f"This version of Ray opens ports to the network ({address}).")
            serve_until_abandoned(address)
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)
