"""What is packed, and how the files find each other."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("scml")
from marlab.lab.errors import UserError
from marlab.market.agent.agent import LitaAgentHRL
from marlab.market.networks import forward
from marlab.market.networks.forward import L3_KIND
from marlab.market.submit.pack import pack, package_name, versions

MINE = """
from scml.std import RandomStdAgent
from beside import PRICE
from marlab.market.rules.goals import bucket_of

class Mine(RandomStdAgent):
    def __init__(self, *args, x=1, **kwargs):
        super().__init__(*args, **kwargs)
        self.x, self.bucket = x + PRICE, bucket_of(4.0)
"""


def test_names_of_packages() -> None:
    assert package_name(LitaAgentHRL) == "lita_agent_hrl"
    assert package_name(type("MyAgent2", (), {})) == "my_agent2" and package_name(type("AX", (), {})) == "ax"


def test_rules_are_packed_without_networks_or_torch(tmp_path: Path) -> None:
    packed = pack("LitaAgentHRL", tmp_path)
    assert packed.networks == () and packed.files == ()
    assert "marlab.market.rules.rule_w" in packed.modules and "marlab.market.networks.weights" not in packed.modules
    texts = [file.read_text() for file in packed.folder.rglob("*.py")]
    assert not any(line.startswith(("import torch", "from torch")) for t in texts for line in t.splitlines())
    assert not any("from marlab" in text or "import marlab" in text for text in texts)
    deep = (packed.folder / "parts" / "market" / "rules" / "l1.py").read_text()
    assert "from ...market.logs.daystate import" in deep


def test_networks_are_packed_as_arrays(tmp_path: Path) -> None:
    packed = pack("LitaAgentHRL(mode=neural, min_confidence=0.2)", tmp_path)
    assert packed.networks == ("l2", "l3", "l4")
    assert forward.load(packed.folder / "weights" / "l3.npz", L3_KIND).options["horizon"] == 40
    entry = (packed.folder / "agent.py").read_text()
    assert "'min_confidence': 0.2" in entry and 'HERE / "weights" / "l2.npz"' in entry


def test_learnt_habits_travel_with_the_rule(tmp_path: Path) -> None:
    packed = pack("LitaAgentHRL(mode=learned)", tmp_path)
    assert (packed.folder / "weights" / "habits.json").is_file() and packed.networks == ()
    assert '"weights" / "habits.json"' in (packed.folder / "agent.py").read_text()


def test_an_own_agent_brings_its_files_and_what_it_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine_packed.py").write_text(MINE)
    (tmp_path / "beside.py").write_text("PRICE = 40\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    out = tmp_path / "out"
    out.mkdir()
    packed = pack("mine_packed:Mine(x=2)", out)
    assert {file.name for file in packed.files} == {"mine_packed.py", "beside.py"}
    text = (packed.folder / "mine_packed.py").read_text()
    assert "from .beside import PRICE" in text and "from .parts.market.rules.goals import bucket_of" in text
    monkeypatch.syspath_prepend(str(out))
    agent = __import__("mine").Mine()
    assert (agent.x, agent.bucket) == (42, 1) and type(agent).__module__ == "mine.agent"
    for name in [n for n in sys.modules if n.partition(".")[0] in ("mine", "mine_packed", "beside")]:
        del sys.modules[name]


def test_values_that_cannot_be_written_down_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="untrained"):
        pack("LitaAgentHRL(mode=neural, l2_model_path=untrained)", tmp_path)
    assert {"python", "scml", "negmas", "numpy"} <= versions().keys()
