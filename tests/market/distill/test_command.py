"""`marlab market distill` on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.cli import main


def test_a_source_that_is_not_there_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["market", "distill", str(tmp_path / "none"), "--output-dir", str(tmp_path / "run")]) == 2
    assert "Nothing learnt is at" in capsys.readouterr().err
