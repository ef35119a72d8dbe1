"""The film and the data that the command writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marlab.cli import main as cli
from marlab.hunt.watch.command import WatchConfig
from marlab.hunt.watch.film import watch, write_episode
from marlab.lab.errors import UserError
from marlab.lab.film import can_film
from marlab.lab.runs.stopping import Stopping


def test_the_command_writes_film_and_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["hunt", "watch", "NS", "--team", "NS+2NH", "--seat", "3", "--seconds", "0.1", "--pictures"]
    assert cli([*words, "--output-dir", str(tmp_path)]) == 0
    stored = json.loads((tmp_path / "episode.json").read_text())
    assert stored["players"] == ["NH", "NH", "NS", "NS"] and stored["frames"][0]["scene"]["t"] == 0
    assert len(list(tmp_path.glob("step_*.png"))) == len(stored["frames"])
    assert (tmp_path / "episode.mp4").exists() == can_film()
    assert "earned:" in capsys.readouterr().out


def test_a_film_that_was_stopped_shows_what_was_played(tmp_path: Path) -> None:
    config = WatchConfig("NS", team="NS+2NH", seconds=0.1, output_dir=tmp_path)
    whole = watch(config)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stopping, "must_stop", lambda self: True)
        cut = watch(config)
        assert len(cut.moments) == 2 < len(whole.moments) and cut.moments[0] == whole.moments[0]
        write_episode(cut, tmp_path, config)
        with pytest.raises(UserError, match="before the episode began"):
            watch(WatchConfig("NS", after=3, output_dir=tmp_path))
    assert len(json.loads((tmp_path / "episode.json").read_text())["frames"]) == 2
