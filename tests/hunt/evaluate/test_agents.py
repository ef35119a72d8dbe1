"""Players by name, and names that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.hunt.evaluate.agents import find_agent, find_agents
from marlab.lab.errors import UserError


def test_wrong_agents_are_told_in_a_sentence(ppo: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"FOX.*not a player"):
        find_agent("FOX")
    with pytest.raises(UserError, match="There is no run"):
        find_agent(str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match="There is no seed 9"):
        find_agent(f"{ppo}:9")
    with pytest.raises(UserError, match="only planning agents take"):
        find_agent(f"{ppo}?trees=2")
    with pytest.raises(UserError, match="Two agents are called 'NS'"):
        find_agents(["NS", "NS"])
    with pytest.raises(UserError, match="snowdrift"):
        find_agent("ND")
