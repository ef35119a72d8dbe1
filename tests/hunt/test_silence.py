"""No command of the hunt is silent for long, keeps to its time limit, and says what came of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.silence import listen


def patience() -> float:
    """Five seconds; where others work on the same cores, as many times longer as there is too little of them."""
    return 5.0 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


SMALL = ["--device", "cpu", "--total-steps", "1500", "--eval-episodes", "20", "--pipeline.rows", "2000"]


@pytest.mark.long
def test_commands_of_the_hunt_speak(tmp_path: Path) -> None:
    """One after the other in one folder: each uses what those before it made."""
    train = ["hunt", "train", "--preset", "hop_quick", *SMALL, "--pipeline.gates", "warn", "--learn.warm-updates", "20"]
    commands = [
        ["hunt", "collect", "--rows", "3000", "--name", "data"],
        ["hunt", "pretrain", "vae", "runs/hunt/data", "--epochs", "2", "--vae-epochs", "1", "--name", "vae"],
        ["hunt", "pretrain", "world", "runs/hunt/data", "--epochs", "2", "--name", "world"],
        [*train, "--name", "hop"],
        ["hunt", "diagnose", "hop", "vae", "world", "--episodes", "20", "--belief-games", "4"],
        ["hunt", "watch", "runs/hunt/hop"],
    ]
    for words in commands:
        heard = listen(words, tmp_path)
        assert heard.code == 0, "\n".join(heard.lines[-20:])
        assert heard.longest < patience(), f"{' '.join(words)}: {heard.longest:.1f} s before '{heard.before}'"
        if words[1] != "watch":
            assert any("Next: " in line for line in heard.lines), words


@pytest.mark.long
@pytest.mark.parametrize("kind", ["ppo", "hop"])
def test_a_limit_bounds_a_training_and_is_used(tmp_path: Path, kind: str) -> None:
    words = ["hunt", "train", "--variant", kind, "--device", "cpu", "--time-limit", "0.75", "--name", "run"]
    words += ["--total-steps", "100000000"] if kind == "ppo" else ["--preset", "hop_quick", "--total-steps", "1000000"]
    heard = listen(words, tmp_path)
    assert heard.code == 0 and 45 - 10 < heard.seconds < 45 + 2 * patience(), f"{heard.seconds:.1f} s of 45"
    assert heard.longest < patience(), heard.before
    assert "goes on" in heard.lines[-1] or any("--resume" in line for line in heard.lines[-3:])
    assert list((tmp_path / "runs/hunt/run/figures").glob("*.png"))
