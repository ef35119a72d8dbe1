"""The league's own tournament."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("scml")
from marlab.cli import main
from marlab.lab.errors import UserError
from marlab.lab.runs.run import RunOptions
from marlab.market.arena.command import PlayCommand
from marlab.market.arena.official import _rows
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
    assert all(row["low"] <= row["mean"] <= row["high"] and -5 < row["balanced"] < 5 for row in rows)
    assert "official score" in capsys.readouterr().out
    with pytest.raises(UserError, match="class once"):
        play(
            PlayCommand(agents=(REPORTING, f"{OURS}:ReportingAgent(word=heuristic)"), engine="serial", official=True),
            RunOptions(output_dir=tmp_path / "twice"),
        )


def test_the_balanced_mean_counts_every_factory_once() -> None:
    """Two of three seats of an agent are in one factory."""
    pandas = pytest.importorskip("pandas")
    kind = f"adapter:{arena_agents.ReportingAgent.__module__}.ReportingAgent"
    worlds = [("0000a.01", "00Re@0", 1.0), ("0000b.02", "00Re@0", 2.0), ("0001c.01", "00Re@0", 0.5)]
    table = pandas.DataFrame([{"world": w, "agent_id": a, "agent_type": kind, "score": s} for w, a, s in worlds])
    results = SimpleNamespace(total_scores=pandas.DataFrame([{"agent_type": kind, "score": 1.2}]), scores=table)
    (row,) = _rows(results, ["mine"], [(arena_agents.ReportingAgent, {})])
    assert row["balanced"] == (1.5 + 0.5) / 2 and row["mean"] == 3.5 / 3 and row["score"] == 1.2
