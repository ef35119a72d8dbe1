"""`marlab market beliefs` on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.cli import main


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["market", "beliefs", str(tmp_path / "none"), "--output-dir", str(tmp_path / "run")]) == 2
    assert "is not a folder" in capsys.readouterr().err
