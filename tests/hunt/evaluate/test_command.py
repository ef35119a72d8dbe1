"""The command and its settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.cli import main as cli
from marlab.hunt.evaluate.command import HuntEvalConfig
from marlab.lab.errors import UserError
from marlab.lab.runs.records import read_run


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"agent": "NS", "game": "chess"}, "not a game"),
        ({"agent": "NS", "runs": 1}, "runs is 1"),
        ({"agent": "NS", "game": "msh_4x4", "window": 10}, "window is 10"),
        ({"agent": "NS", "parts": ()}, "parts is empty"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, object], told: str) -> None:
    with pytest.raises(UserError, match=told):
        HuntEvalConfig(**wrong)  # type: ignore[arg-type]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "hunt eval NH --parts scenarios --scenarios visit_all_hare --runs 4 --steps 40 --window 40 --layouts 2"
    out = tmp_path / "run"
    assert cli([*words.split(), "--no-figures", "--device", "cpu", "--output-dir", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "visit_all_hare" in printed and str(out / "scorecard.md") in printed
    assert (out / "scorecard.md").is_file() and read_run(out).status == "finished"
    assert cli(["hunt", "eval"]) == 2
    assert "Name an agent" in capsys.readouterr().err
