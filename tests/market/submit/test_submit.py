"""A submission from one end to the other: folder, zip, and a trial in which it decides as it does here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("scml")
from marlab.lab.errors import UserError
from marlab.market.simulator import clean
from marlab.market.submit.settings import SubmitConfig
from marlab.market.submit.submit import submit, told


@pytest.mark.long
@pytest.mark.parametrize("agent", ["LitaAgentHRL", "LitaAgentHRL(mode=neural)"])
def test_what_is_submitted_decides_as_it_does_here(agent: str, tmp_path: Path) -> None:
    folder, packed, trial = submit(SubmitConfig(agent, tmp_path / "out", days=6))
    assert trial.ok and trial.decisions > 50, trial.checks
    assert told(folder, packed, trial)[-1].startswith("Ready")
    with zipfile.ZipFile(folder / "lita_agent_hrl.zip") as archive:
        names = archive.namelist()
    assert "requirements.txt" in names and "lita_agent_hrl/agent.py" in names and not any("pyc" in n for n in names)
    stored = json.loads((folder / "check.json").read_text())
    assert stored["class"] == "LitaAgentHRL" and all(check["ok"] for check in stored["checks"])


@pytest.mark.long
def test_the_zip_plays_in_an_environment_without_marlab_and_torch(tmp_path: Path) -> None:
    """A fresh environment that sees scml and what scml needs, by their folders, and nothing else."""
    (tmp_path / "out" / "lita_agent_hrl").mkdir(parents=True)
    (tmp_path / "out" / "lita_agent_hrl" / "check.json").write_text("{}")  # an earlier submission, which is replaced
    folder, packed, _ = submit(SubmitConfig("LitaAgentHRL", tmp_path / "out", days=4))
    home = tmp_path / "fresh"
    venv.create(home, with_pip=False)
    site = next((home / "lib").glob("python*/site-packages"))
    here = Path(next(p for p in sys.path if p.endswith("site-packages")))
    for path in here.iterdir():
        if (
            not path.name.lower().startswith(("torch", "marlab", "__editable__", "_marlab", "shtab"))
            and path.suffix != ".pth"
        ):
            (site / path.name).symlink_to(path)
    with zipfile.ZipFile(folder / f"{packed.name}.zip") as archive:
        archive.extractall(tmp_path / "handed_in")
    task = {"folder": str(tmp_path / "handed_in"), "module": packed.name, "class": packed.class_name, "parameters": {},
            "blocked": [], "levels": 2, "factories": 2, "others": ["RandomStdAgent"], "days": 4, "seed": 5}  # fmt: skip
    (tmp_path / "task.json").write_text(json.dumps(task))
    code = "import importlib.util as u; print([u.find_spec(n) is None for n in ('marlab', 'torch')])"
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    python = str(home / "bin" / "python")
    known = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, env=env, cwd=tmp_path)
    assert known.stdout.strip() == "[True, True]"
    files = [str(tmp_path / name) for name in ("task.json", "result.json")]
    subprocess.run([python, clean.__file__, *files], check=True, env=env, cwd=tmp_path)
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["raised"] == 0 and result["decisions"] and not result["unwanted"]


def test_a_folder_that_is_no_submission_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "lita_agent_hrl").mkdir()
    (tmp_path / "lita_agent_hrl" / "thesis.txt").write_text("mine")
    with pytest.raises(UserError, match="is no submission"):
        submit(SubmitConfig("LitaAgentHRL", tmp_path))
    assert (tmp_path / "lita_agent_hrl" / "thesis.txt").read_text() == "mine"
