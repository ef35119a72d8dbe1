"""The decision log on disk."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("scml")

from marlab.market.agent.agent import LitaAgentHRL
from marlab.market.agent.settings import AgentSettings, RuleOptions


def test_a_log_on_disk(tmp_path: Path) -> None:
    from marlab.market.agent.log import DecisionLog

    for _ in range(2):
        log = DecisionLog(tmp_path, "00LHR@0")
        log.write("decision", baseline=np.array([1.0, 2.0]), alpha=np.float64(0.5), received=(1, 2, 3))
        log.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["00LHR_at_0-2.jsonl", "00LHR_at_0.jsonl"]
    line = json.loads((tmp_path / "00LHR_at_0.jsonl").read_text())
    assert line == {"kind": "decision", "baseline": [1.0, 2.0], "alpha": 0.5, "received": [1, 2, 3]}


def test_the_log_tells_the_rule(tmp_path: Path) -> None:
    settings = AgentSettings(mode="heuristic", rule=RuleOptions(opening_days=4), decision_log=tmp_path)
    agent = LitaAgentHRL(**vars(settings))
    agent._awi = SimpleNamespace(is_perishable=False, allow_zero_quantity=False, horizon=10)
    agent.init()
    agent.log.close()
    assert agent.log.path is not None
    told = json.loads(agent.log.path.read_text().splitlines()[0])
    assert told["settings"]["rule"]["opening_days"] == 4 and told["settings"]["l1"]["rules"] == "economic"
