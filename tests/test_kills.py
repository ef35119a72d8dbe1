"""Every command that writes, killed at random moments: it comes to what it comes to undisturbed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.commands_that_write import (
    ELSEWHERE,
    NOTHING_TO_GO_ON_WITH,
    WRITING,
    assert_equal_runs,
    assert_nothing_is_half_written,
)
from tests.fuzz.configs import run_commands
from tests.kills import run_with_kills
from tests.pins import commands

KILLS = int(os.environ.get("KILLS", "10"))


def test_every_command_is_killed_somewhere_or_has_nothing_to_go_on_with() -> None:
    """A new command that works in a run directory gets a line in WRITING (or a test of its own in ELSEWHERE)."""
    everything = {" ".join(word for word in words if word[0] != "-") for words, _ in commands()}
    names = {name.replace(" hopplus-mcts", "") for name in everything}
    killed = {name for name in names if any(f"{known} ".startswith(f"{name} ") for known in (*WRITING, *ELSEWHERE))}
    assert names - killed == set(NOTHING_TO_GO_ON_WITH)
    with_a_run = {" ".join(word for word in words.split(" --")[0].split()) for words in run_commands()}
    assert with_a_run <= killed
    assert all((Path(__file__).parents[1] / place).exists() for place in ELSEWHERE.values())


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
