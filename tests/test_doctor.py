"""`marlab doctor`: every world is really played, notes do not fail, and what fails is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab import doctor
from marlab.cli import main


def test_an_installation_that_works(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--root", str(tmp_path)]) == 0
    rows = {line[8:22].strip(): line[:8].strip() for line in capsys.readouterr().out.splitlines()}
    assert {rows[name] for name in ("versions", "runs", "fish", "hunt", "market")} == {"ok"}


def test_what_is_missing_is_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    monkeypatch.setattr("marlab.lab.native.library_of", lambda *_: "no C compiler was found")
    for world in ("_fish", "_hunt", "_market"):
        monkeypatch.setattr(doctor, world, lambda: "played")
    assert main(["doctor", "--root", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "pip install 'marlab[market]'" in shown and "no C compiler was found: everything works without" in shown


def test_a_world_that_does_not_work_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> str:
        raise RuntimeError("the shoal is gone\nand more")

    monkeypatch.setattr(doctor, "_fish", broken)
    for world in ("_hunt", "_market"):
        monkeypatch.setattr(doctor, world, lambda: "played")
    assert main(["doctor", "--root", str(tmp_path)]) == 1
    shown = capsys.readouterr().out
    assert "FAILED  fish          RuntimeError: the shoal is gone\n" in shown
    assert shown.endswith("Not everything works: fish.\n")
