"""`marlab fish starts`: stages as plain words, and the report of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.fish.commands.starts import main
from marlab.fish.starts.files import parse_stage_spec
from marlab.lab.errors import UserError
from tests.fish.starts.test_make import printed_spec


def test_command_takes_stages_as_plain_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ne:slow", "sw:fast:8", "--count", "3", "--output-dir", str(tmp_path)]) == 0
    assert [s.iterations for s in parse_stage_spec(printed_spec(capsys.readouterr().out))] == [16, 8]
    assert main(["--check", "planB_sw_slow.json"]) == 0
    with pytest.raises(UserError, match="Name stages"):
        main([])
