"""The two commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab import cli


def test_a_new_agent_by_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["market", "new-agent", "MyAgent", "--folder", str(tmp_path)]) in (0, None)
    assert "mine=my_agent:MyAgent" in capsys.readouterr().out and (tmp_path / "my_agent.py").exists()


def test_an_unknown_agent_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("scml")
    assert cli.main(["market", "submit", "LitaAgentHLR"]) == 2
    assert "did you mean LitaAgentHRL" in capsys.readouterr().err
