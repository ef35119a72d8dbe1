"""What a trial finds: each fault by its own sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("scml")
from marlab.lab.errors import UserError
from marlab.market.submit.check import Trial, try_out

GOOD = """
from scml.std import StdSyncAgent
class Same(StdSyncAgent):
    def first_proposals(self):
        return {partner: None for partner in self.negotiators}
    def counter_all(self, offers, states):
        EXTRA
        return super().counter_all(offers, states) if False else {}
"""


def trial(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, here: str = "pass", away: str = "pass") -> Trial:
    """An agent that does one thing here and another one as it was packed."""
    (folder / f"{name}.py").write_text(GOOD.replace("EXTRA", here))
    packed = folder / "packed"
    packed.mkdir()
    (packed / f"{name}_away.py").write_text(GOOD.replace("EXTRA", away))
    (packed / "a.zip").write_bytes(b"")
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    return try_out(f"{name}:Same", packed.resolve(), f"{name}_away", "Same", packed / "a.zip", days=4, seed=3)


@pytest.mark.long
def test_faults_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = trial(tmp_path, monkeypatch, "faulty", away=f"open({str(tmp_path / 'spy')!r}, 'a').write('x'); 1 / 0")
    bad = {check.what: check.found for check in found.checks if not check.ok}
    assert not found.ok and "spy" in bad["writes no files, starts no programs, uses no network"]
    assert bad["raises nothing"] != "0 exceptions"


def test_an_agent_that_needs_more_than_scml_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"where only scml is installed: .*torch"):
        trial(tmp_path, monkeypatch, "heavy", away="pass\nimport torch\nclass Other:\n    def f(self):\n        pass")
