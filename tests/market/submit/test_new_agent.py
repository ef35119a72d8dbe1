"""A new agent works as it is written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("scml")
from marlab.lab.errors import UserError
from marlab.market.submit.new_agent import new_agent
from marlab.market.submit.settings import NewAgentConfig


def test_its_own_test_passes(tmp_path: Path) -> None:
    files = new_agent(NewAgentConfig("HalfPrice", tmp_path))
    assert [file.name for file in files] == ["half_price.py", "test_half_price.py"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", files[1].name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.parametrize("name", ["my agent", "mine", "1st", "None"])
def test_names_that_are_none_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is no name for a class"):
        new_agent(NewAgentConfig(name, tmp_path))


def test_nothing_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "test_my_agent.py").write_text("mine")
    with pytest.raises(UserError, match="exists"):
        new_agent(NewAgentConfig("MyAgent", tmp_path))
    assert (tmp_path / "test_my_agent.py").read_text() == "mine" and not (tmp_path / "my_agent.py").exists()
    with pytest.raises(UserError, match="There is no folder"):
        new_agent(NewAgentConfig("MyAgent", tmp_path / "nowhere"))
