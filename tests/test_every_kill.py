"""Nothing is lost by a kill: every command that writes, before and after each of its writes (tests/every_kill.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from marlab.cli import COMMANDS
from tests.commands_that_write import WRITING
from tests.pins import commands

QUICK = (
    "compare", "draw", "fish starts", "fish watch", "hunt collect", "hunt pretrain world", "hunt train ppo",
    "market eval-l2", "market train", "note", "report", "runs --abandon",
)  # fmt: skip
"""Commands whose tiny run takes a second: of all others, `make test-long` tries the kills."""
PRINTS_ONLY = {"doctor"}
PART = {
    "fish train": 0.4, "hunt pretrain vae": 0.5, "market collect": 0.4, "market clone": 0.5, "market fidelity": 0.3,
    "market play": 0.3, "market samples": 0.2, "market submit": 0.2, "market train": 0.6,
}  # fmt: skip
"""What the long tests try of commands with hundreds of writes; `python -m tests.every_kill` tries all."""


def kills(*words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.every_kill", *words],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[1],
    )
    print(done.stdout)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-3000:]}"


def test_every_command_has_a_tiny_run() -> None:
    """A new command gets one in tests/commands_that_write.py, whether it trains or writes a page."""
    names = {" ".join(words) for words, _ in commands(COMMANDS) if not any(word[0] == "-" for word in words)}
    assert {name for name in names if not any(f"{known} ".startswith(f"{name} ") for known in WRITING)} == PRINTS_ONLY
    assert {known for known in WRITING if not any(f"{known} ".startswith(f"{name} ") for name in names)} == set()
    assert set(QUICK) <= set(WRITING)


def test_a_tenth_of_the_kills_changes_nothing() -> None:
    pytest.importorskip("scml")
    kills(*QUICK, "--share", "0.2")


@pytest.mark.long
@pytest.mark.parametrize("name", WRITING)
def test_no_kill_changes_anything(name: str) -> None:
    if name.startswith(("market", "quickstart")):
        pytest.importorskip("scml")
    kills(name, "--share", str(PART.get(name, 1.0)))
