"""The command's flags."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.lab.errors import UserError
from marlab.market.clones.command import CloneCommand, main
from marlab.market.clones.settings import CloneConfig


def test_experts_are_words(tmp_path: Path) -> None:
    asked = main.parse(["AS0", "PenguinAgent", "--worlds", "9", "--quiet"]).config
    assert asked.experts == ("AS0", "PenguinAgent") and asked.quiet
    assert asked.run_config() == CloneConfig(experts=("AS0", "PenguinAgent"), worlds=9)
    assert CloneCommand.of(CloneConfig()).engine == "local"


def test_nothing_is_written_for_a_wrong_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a folder"):
        main(["AS0", "--recorded", str(tmp_path / "none"), "--output-dir", str(tmp_path / "run"), "--quiet"])
    assert not (tmp_path / "run").exists()


def test_help_names_the_common_flags(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    told = capsys.readouterr().out
    assert "--recorded" in told and "EXPERTS" in told.upper()
