"""The same command twice on a machine of several cores: equal to the last bit, because a run computes on one thread."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands_that_write import WRITING
from tests.equal_files import differences


@pytest.mark.parametrize("name", ["hunt pretrain vae", "hunt train ppo"])
def test_trained_twice_every_bit_is_equal(name: str, tmp_path: Path) -> None:
    """Several threads round sums in an order of their own; the models of others showed it first."""
    free = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    folder = tmp_path / "work"  # the same for both, because records name it
    for turn in ("first", "second"):
        folder.mkdir()
        WRITING[name].prepare(folder)
        command = [sys.executable, "-m", "marlab", *WRITING[name].argv(folder)]
        subprocess.run(command, cwd=folder, env=free, check=True, capture_output=True)
        shutil.move(folder, tmp_path / turn)
    assert differences(tmp_path / "first", tmp_path / "second") == []
