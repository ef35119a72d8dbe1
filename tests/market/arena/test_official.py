"""The league's own tournament."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("scml")
from marlab.cli import main
from marlab.lab.errors import UserError
from marlab.lab.runs.run import RunOptions
from marlab.market.arena.command import PlayCommand
from marlab.market.arena.play import play
from tests.market import arena_agents

OURS = arena_agents.__name__
REPORTING = f"{OURS}:ReportingAgent(share=0.25, word=heuristic)"


@pytest.mark.long
def test_the_official_tournament(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The league's own function, two tiny worlds; its files stay in the run directory."""
    words = ["--days", "5", "5", "--processes", "2", "2", "--configs", "1", "--turns", "2", "--engine", "serial"]
    agents = ["--agents", "SyncRandomStdAgent", f"{OURS}:ReportingAgent(word=heuristic)"]
    assert main(["market", "play", "--official", *agents, *words, "--output-dir", str(tmp_path / "run")]) == 0
    rows = json.loads((tmp_path / "run" / "results.json").read_text())
    assert {row["agent"] for row in rows} == {"SyncRandomStdAgent", "ReportingAgent(word=heuristic)"}
    assert all(row["seats"] == 2 and -5 < row["score"] < 5 for row in rows)
    assert all(row["low"] <= row["mean"] <= row["high"] for row in rows)
    assert "official score" in capsys.readouterr().out
    with pytest.raises(UserError, match="class once"):
        play(
            PlayCommand(agents=(REPORTING, f"{OURS}:ReportingAgent(word=heuristic)"), engine="serial", official=True),
            RunOptions(output_dir=tmp_path / "twice"),
        )
