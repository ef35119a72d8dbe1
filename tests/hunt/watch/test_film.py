"""The film and the data that the command writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marlab.cli import main as cli
from marlab.lab.film import can_film


def test_the_command_writes_film_and_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["hunt", "watch", "NS", "--team", "NS+2NH", "--seat", "3", "--seconds", "0.1", "--pictures"]
    assert cli([*words, "--output-dir", str(tmp_path)]) == 0
    stored = json.loads((tmp_path / "episode.json").read_text())
    assert stored["players"] == ["NH", "NH", "NS", "NS"] and stored["frames"][0]["scene"]["t"] == 0
    assert len(list(tmp_path.glob("step_*.png"))) == len(stored["frames"])
    assert (tmp_path / "episode.mp4").exists() == can_film()
    assert "earned:" in capsys.readouterr().out
