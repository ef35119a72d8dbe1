"""What has to be there before a block of the docs can run: small stand-ins for minutes and hours of work.

Each is made once per process, by the commands that a reader would type, and copied to where the block runs.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import shutil
import tempfile
from functools import cache
from pathlib import Path

from examples.tiny_world import command as tiny_world

from marlab.cli import main

STAGES = {
    "a tiny run": ["tiny train --preset small --iterations 2 --name first --device cpu"],
    "a hunt collection": ["hunt collect --rows 2000 --name NAME"],
    "hunt goal codes": [
        "hunt collect --rows 2000 --name data",
        "hunt pretrain vae runs/hunt/data --name codes --epochs 3 --device cpu",
    ],
    "a market collection": [
        "market collect --experts PenguinAgent RandomStdAgent --configs 4 --runs 1 --steps 8 --processes 2 2"
        " --workers 1 --name mine --quiet"
    ],
    "market samples": [
        "market samples runs/market/mine --agent-name PenguinAgent --name penguin_none --workers 1 --quiet"
    ],
    "a market collection and an L2": [
        "market train runs/market/penguin_none --phases l2 --l2-stages 1:1e-3 --name l2 --device cpu"
    ],
    "my_tasks.py": [],
}
BEFORE = {"market samples": "a market collection", "a market collection and an L2": "market samples"}


def set_up(what: str, folder: Path) -> None:
    """Put `what` (a name of STAGES) into `folder`."""
    shutil.copytree(_made(what), folder, dirs_exist_ok=True)


@cache
def _made(what: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="docs-stage-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if what in BEFORE:
        set_up(BEFORE[what], folder)
    shown = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(shown):
        for line in STAGES[what]:
            words = line.split()
            code = tiny_world.main(words[2:]) if words[0] == "tiny" else main(words)
            assert code == 0, f"marlab {line}\n{shown.getvalue()}"
    if what == "my_tasks.py":
        (folder / "my_tasks.py").write_text("def play(seed: int, days: int = 50) -> float:\n    return seed / days\n")
    if what.endswith("an L2"):
        (folder / "out").mkdir()
        shutil.copy(next((folder / "runs/market/l2").rglob("l2_bc.pt")), folder / "out")
    return folder
