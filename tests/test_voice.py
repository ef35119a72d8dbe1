"""Commands are never silent for long, and trainings and evaluations end with their verdict and the place of the run.

The commands run as users run them, into a pipe, on settings that are as small as they can be.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.long  # a process with torch or the simulator for each command

LONGEST_S = 5.0
SMALL = (
    "--total-iterations 2 --curriculum 4:2 --num-envs 4 --n-steps 32 --batch-size 64 --n-epochs 1 "
    "--escape-boost-phase-speeds '' --escape-boost-phase-floors '' --density-penalty-phase-targets 0.0 "
    "--density-penalty-ramp-phases '' --density-penalty-phase-plateaus '' --penalty-gate-phase-allowance 1 "
    "--penalty-gate-required-successes 0 --multi-eval-interval 1 --multi-eval-probe-episodes 2 --eval-multi-fish 4 "
    "--eval-multi-episodes 3 --video-num-fish 0 --device cpu"
)


class Heard(NamedTuple):
    """What a command said."""

    lines: list[str]
    silence: float  # the longest between two lines, the first one's wait included
    code: int


def listen(words: str, folder: Path) -> Heard:
    """Run `marlab WORDS` and listen, until its last line."""
    command = f"exec {sys.executable} -m marlab {words}"
    began = last = time.monotonic()
    lines, silence = [], 0.0
    with subprocess.Popen(
        command, shell=True, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            now = time.monotonic()
            silence, last = max(silence, now - last), now
            lines.append(line.rstrip("\n"))
    assert last >= began
    return Heard(lines, silence, process.returncode)


def busy() -> float:
    """On a machine with more work than cores everything takes its multiple."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("voice")


@pytest.mark.parametrize(
    ("words", "last"),
    [
        (f"fish train {SMALL} --name small", "The run is in runs/fish/small;"),
        ("fish eval best --episodes 3 --fish 8 --name judged", "The run is in runs/fish/judged;"),
        ("fish probe best --episodes 2 --fish 8 --films 1 --output-dir probed", "written to probed"),
        ("fish watch best --fish 4 --steps 40 --film seen.mp4", "41 frames in seen.mp4"),
        ("hunt collect --rows 2000 --name data", "The run is in runs/hunt/data;"),
    ],
)
def test_nobody_has_to_wonder(folder: Path, words: str, last: str) -> None:
    heard = listen(words, folder)
    assert heard.code == 0, heard.lines[-5:]
    assert heard.silence < LONGEST_S * busy(), (heard.silence, heard.lines[-5:])
    assert heard.lines[-1].startswith(last)
    if words.startswith(("fish train", "fish eval")):
        assert any("held-out fish survive" in line for line in heard.lines[-5:])
        assert heard.lines[-2].startswith("Next: ")


def test_drawing_again_says_what_a_training_said(folder: Path) -> None:
    assert listen(f"fish train {SMALL} --name drawn", folder).code == 0
    heard = listen("draw fish/drawn", folder)
    assert heard.code == 0 and heard.silence < LONGEST_S * busy(), (heard.silence, heard.lines[-5:])
    assert heard.lines[-1].startswith("Drawn: runs/fish/drawn;") and heard.lines[-2].startswith("Next: ")
    assert any("held-out fish survive" in line for line in heard.lines[-5:])


def test_a_time_limit_holds_for_everything(folder: Path) -> None:
    began, slower = time.monotonic(), busy()
    limit_s = 40.0 * slower
    heard = listen(f"fish train --preset best --time-limit {limit_s / 60:.3f} --device cpu --name short", folder)
    took = time.monotonic() - began
    assert heard.code == 0 and heard.lines[-1].startswith("Stopped (time limit). The run is in runs/fish/short")
    assert 0.8 * limit_s < took < limit_s + 10 * slower, heard.lines[-12:]
    assert (folder / "runs/fish/short/figures/short_survival.png").exists()
    assert any("held-out fish survive" in line for line in heard.lines[-5:])
