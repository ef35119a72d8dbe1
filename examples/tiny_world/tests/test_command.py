"""The command trains in a run directory, and goes on with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.tiny_world.command import main
from marlab.lab.errors import UserError


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert main("--preset small --iterations 2 --name first".split()) == 0
    assert (tmp_path / "runs/tiny/first/run.json").exists() and "marlab note" in capsys.readouterr().out
    with pytest.raises(UserError, match="--resume"):
        main("--preset small --iterations 2 --name first".split())
