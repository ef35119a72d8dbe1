"""What has to be there before a block of the docs can run: small stand-ins for minutes and hours of work.

Each is made once per process, by the commands that a reader would type or from golden files, and copied to where the
block runs.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import shutil
import tempfile
from functools import cache
from pathlib import Path

import torch
from examples.tiny_world import command as tiny_world

from marlab.cli import main
from marlab.fish.training.config import FishTrainConfig
from marlab.hunt.game.config import game_config
from marlab.hunt.others.codes import Codebook
from marlab.hunt.others.models import GoalModels, ModelSpec, save_goal_models
from marlab.lab.config import to_dict
from marlab.lab.runs.run import Run, RunOptions
from marlab.market.logs.worldfile import read_world
from marlab.market.networks.manager import HorizonManagerPPO
from marlab.market.networks.weights import save_network
from marlab.market.samples.extract import extract
from marlab.market.samples.options import SampleOptions
from tests.market.sample_tools import write_dataset

STAGES = {
    "a tiny run": ["tiny train --preset small --iterations 2 --name first --device cpu"],
    "a hunt collection": ["hunt collect --rows 2000 --name NAME"],
    "hunt goal codes": [],
    "a market collection": [],
    "market samples": [],
    "weights without options": [],
    "my_tasks.py": [],
    "three fish runs": [],
}
TINY = Path(__file__).parent / "golden" / "market" / "tiny_world.parquet"


def set_up(what: str, folder: Path) -> None:
    """Put `what` (a name of STAGES) into `folder`."""
    shutil.copytree(_made(what), folder, dirs_exist_ok=True)


@cache
def _made(what: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="docs-stage-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shown = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(shown):
        for line in STAGES[what]:
            words = line.split()
            code = tiny_world.main(words[2:]) if words[0] == "tiny" else main(words)
            assert code == 0, f"marlab {line}\n{shown.getvalue()}"
    if what == "my_tasks.py":
        (folder / "my_tasks.py").write_text("def play(seed: int, days: int = 50) -> float:\n    return seed / days\n")
    if what == "three fish runs":
        for name, width in {"base": "64,64", "wide": "128,128", "old": "32,32"}.items():
            config = FishTrainConfig(policy_hidden_sizes=width)
            with Run.open("fish", config, RunOptions(name=name, tags=("v32",)), root=folder / "runs") as run:
                run.add_results({"training survival": {"value": 0.9, "low": 0.8, "high": 0.95, "unit": "share"}})
    if what == "hunt goal codes":  # not trained: the block loads them and asks for predictions
        spec = ModelSpec(game_config("msh_4x4"), "history", code_width=16, hidden=128, paths=False)
        even = torch.ones(8, 16), torch.full((3, 8), 1 / 3), torch.full((8,), 1 / 8), torch.full((2, 8), 1 / 2)
        (folder / "runs/hunt/codes").mkdir(parents=True)
        save_goal_models(folder / "runs/hunt/codes/models.pt", GoalModels(spec), Codebook(torch.randn(8, 16), *even), 1)
    if what == "a market collection":
        (folder / "runs/market/mine/worlds").mkdir(parents=True)
        shutil.copy(TINY, folder / "runs/market/mine/worlds")
        save_network(folder / "out/l2_bc.pt", HorizonManagerPPO(), data=to_dict(SampleOptions()))
    if what == "weights without options":
        save_network(folder / "out/l2_bc.pt", HorizonManagerPPO())
    if what == "market samples":
        samples = extract(next(read_world(TINY).tracked()), SampleOptions())
        write_dataset(folder / "runs/market/penguin_none/data", {"train": samples}, to_dict(SampleOptions()))
    return folder
