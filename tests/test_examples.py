"""The programs of `examples/` run, and a copy of the tiny world under another name works by the page alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# the tiny world brings its own tests
from examples.tiny_world.tests.test_command import *  # noqa: F403
from examples.tiny_world.tests.test_config import *  # noqa: F403
from examples.tiny_world.tests.test_rules import *  # noqa: F403
from examples.tiny_world.tests.test_trainer import *  # noqa: F403

ROOT = Path(__file__).parents[1]
WORLD_LINES = 280


def program(tmp_path: Path) -> dict[str, str]:
    """An environment in which `python` and `marlab` are this interpreter and the package of a copy of the checkout."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for name, words in {"python": "", "marlab": "-m marlab"}.items():
        (bin_folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        (bin_folder / name).chmod(0o755)
    return {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}


def test_the_tiny_world_is_small() -> None:
    files = (ROOT / "examples" / "tiny_world").glob("*.py")
    assert sum(len(path.read_text().splitlines()) for path in files) < WORLD_LINES


@pytest.mark.long
def test_a_copy_of_the_tiny_world_works_by_the_page_alone(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "contributing.md").read_text()
    typed = re.search(r"checked: by tests/test_examples.py -->\n```sh\n(.*?)^```", page, re.S | re.M)
    assert typed
    copy = tmp_path / "marlab"
    leave_out = shutil.ignore_patterns("__pycache__", "golden")
    for part in ("src", "examples", "tests"):
        shutil.copytree(ROOT / part, copy / part, ignore=leave_out)
    shutil.copy(ROOT / "pyproject.toml", copy)
    env = program(tmp_path) | {"PYTHONPATH": f"{copy / 'src'}:{copy}"}
    done = subprocess.run(
        ["bash", "-ec", typed[1]], cwd=copy, env=env, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "steps too many" in done.stdout and "pond/small" in done.stdout
    assert not [path for path in (copy / "src/marlab/pond").rglob("*.py") if "tiny" in path.read_text().lower()]


# --- programs -----------------------------------------------------------------------------------------------------


def test_ppo_learns_an_own_world() -> None:
    from examples import own_world

    assert own_world.main() > 0.95


@pytest.mark.slow
def test_a_shoal_is_trained_and_played(tmp_path: Path) -> None:
    from examples import train_a_shoal

    scores = train_a_shoal.main(tmp_path / "run")
    assert scores["shipped"] > 0.9 and 0.0 <= scores["trained for seconds"] <= 1.0


@pytest.mark.slow
def test_a_planner_meets_strangers() -> None:
    from examples import planner_among_strangers

    alone, needed = planner_among_strangers.main().values()
    assert alone > 0.85 and needed > 4.5


@pytest.mark.slow
def test_lita_plays_in_a_world_of_the_users() -> None:
    pytest.importorskip("scml")
    words = [sys.executable, "-m", "examples.lita_in_your_world"]  # the simulator warns about its own parts
    shown = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300).stdout
    assert shown.count("score") == 6 and shown.count("LitaAgentHRL") == 2


@pytest.mark.slow
def test_an_own_agent_plays_a_tournament(tmp_path: Path) -> None:
    pytest.importorskip("scml")
    from examples import own_agent

    tables = own_agent.main(tmp_path / "run")
    assert "MyAgent" in tables and "minus RandomStdAgent" in tables


def test_every_program_is_listed_and_says_how_to_start_it() -> None:
    listed = (ROOT / "examples" / "README.md").read_text()
    for path in (ROOT / "examples").glob("[a-z]*.py"):
        start = f"python -m examples.{path.stem}"
        assert start in path.read_text() and start in listed, path.name
