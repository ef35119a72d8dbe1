"""The disk is full at a random write: nothing is lost, the run says so, and it goes on when there is room again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TRIALS = int(os.environ.get("TRIALS", "20"))
OWN_MOUNTS = ["unshare", "--user", "--map-root-user", "--mount"]


def can_mount() -> bool:
    return (
        shutil.which("unshare") is not None
        and subprocess.run([*OWN_MOUNTS, "true"], capture_output=True).returncode == 0
    )


@pytest.mark.long
@pytest.mark.skipif(not can_mount(), reason="needs a Linux that lets users mount in a namespace of their own")
def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    words = [*OWN_MOUNTS, sys.executable, "-m", "tests.full_disk", str(disk), str(TRIALS)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=2000, cwd=Path(__file__).parents[1])
    print(done.stdout)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-6000:]}"
    assert len(done.stdout.splitlines()) >= TRIALS
