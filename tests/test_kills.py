"""Every command that writes, killed at random moments: it comes to what it comes to undisturbed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.commands_that_write import WRITING, assert_equal_runs, assert_nothing_is_half_written
from tests.kills import run_with_kills

KILLS = int(os.environ.get("KILLS", "10"))


@pytest.mark.long
@pytest.mark.parametrize("name", WRITING)
def test_kills_change_nothing(name: str, tmp_path: Path) -> None:
    if name.startswith("market"):
        pytest.importorskip("scml")
    writing, files = WRITING[name], tmp_path / "files"
    files.mkdir()
    writing.prepare(files)
    smooth, killed = tmp_path / "smooth" / "run", tmp_path / "killed" / "run"  # records name the folder
    run_with_kills(writing.argv(files, smooth), smooth, kills=0)
    went = run_with_kills(
        writing.argv(files, killed), killed, kills=KILLS, seed=5, resume=writing.resume, spread_s=0.2,
        after_kill=lambda: assert_nothing_is_half_written(killed),
    )  # fmt: skip
    print(f"{name}: {went.kills} kills in {went.attempts} attempts")
    assert_equal_runs(killed, smooth)
