"""A submission on trial: it plays one world where torch and marlab do not exist, beside the agent as it plays here."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from marlab.lab.errors import UserError
from marlab.market.simulator import clean
from marlab.market.simulator.experts import find_player

BLOCKED = ("torch", "marlab", "tensorflow", "jax")
"""What a submission must not need."""
MOST_START_S = 0.5
"""CPU seconds that the agent may add to the import of the simulator."""
MOST_DECISION_MS = 50.0
"""Milliseconds of a joint decision, 95th percentile, that leave room on a slower machine."""
MOST_MB = 50.0
WORLD = {"levels": 3, "factories": 3, "others": ["GreedyStdAgent", "RandomStdAgent", "SyncRandomStdAgent"]}
LIMIT_S = 900


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    what: str
    ok: bool
    found: str


@dataclass(frozen=True)
class Trial:
    """How a submission behaved."""

    checks: tuple[Check, ...]
    ms_95: float  # of a joint decision
    start_s: float  # on top of the simulator's import
    decisions: int  # answers that were compared

    @property
    def ok(self) -> bool:
        """Whether everything is as the league wants it."""
        return all(check.ok for check in self.checks)


def try_out(player: str, folder: Path, package: str, class_name: str, zip_file: Path, days: int, seed: int) -> Trial:
    """Play the submission in `folder`, and the agent here, in the same world."""
    cls, parameters = find_player(player)
    source = Path(inspect.getsourcefile(cls) or ".").resolve()
    world = {**WORLD, "days": days, "seed": seed}
    away = _play({**world, "folder": str(folder), "module": package, "class": class_name, "parameters": {},
                  "blocked": list(BLOCKED)})  # fmt: skip
    paths = [str(Path(p or ".").resolve()) for p in sys.path]
    here = _play({**world, "folder": str(source.parent), "module": cls.__module__, "class": cls.__name__,
                  "parameters": parameters, "blocked": []}, paths)  # fmt: skip
    start_s = away["start_s"] + away.get("init_s", 0.0)
    size = zip_file.stat().st_size / 1e6
    seconds = away.get("seconds") or [0.0]
    ms_95 = 1000 * float(np.quantile(seconds, 0.95))
    mine, theirs = away.get("decisions", []), here.get("decisions", [])
    same = sum(a == b for a, b in zip(mine, theirs))
    unwanted = away.get("unwanted", [])
    checks = (
        Check("needs nothing but scml", not away["blocked"], f"played without {', '.join(BLOCKED[:2])}"),
        Check("is an agent of the Standard league", away["is_standard"], f"{package}.{class_name}"),
        Check("raises nothing", away.get("raised", 1) == 0, f"{away.get('raised', 0)} exceptions"),
        Check("decides as it does here", bool(mine) and mine == theirs, f"{same} of {len(theirs)} answers"),
        Check("writes no files, starts no programs, uses no network", not unwanted, "; ".join(unwanted[:3]) or "none"),
        Check(f"starts within {MOST_START_S} s", start_s < MOST_START_S,
              f"{start_s:.2f} s after the simulator's {away['simulator_s']:.1f} s"),
        Check(f"decides within {MOST_DECISION_MS:g} ms", ms_95 < MOST_DECISION_MS,
              f"{ms_95:.1f} ms (95th percentile of {len(seconds)} joint decisions)"),
        Check(f"is smaller than {MOST_MB:g} MB", size < MOST_MB, f"{size:.2f} MB"),
    )  # fmt: skip
    return Trial(checks, ms_95, start_s, len(mine))


def _play(task: dict[str, Any], paths: list[str] | None = None) -> dict[str, Any]:
    """The world in a Python of its own; `paths`: where that one may import from besides."""
    more = {"PYTHONPATH": os.pathsep.join(paths)} if paths else {}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    with tempfile.TemporaryDirectory(prefix="marlab-submit-") as folder:
        files = [str(Path(folder) / name) for name in ("task.json", "result.json")]
        Path(files[0]).write_text(json.dumps(task, default=str))
        done = subprocess.run(
            [sys.executable, str(Path(clean.__file__).resolve()), *files],
            capture_output=True,
            text=True,
            cwd=folder,
            timeout=LIMIT_S,
            env={**kept, **more, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"},
        )
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if line.strip()] or ["it ended without a word"]
            where = "where only scml is installed" if task["blocked"] else "here"
            raise UserError(f"The agent {task['module']}.{task['class']} cannot play {where}: {lines[-1][:300]}.")
        result: dict[str, Any] = json.loads(Path(files[1]).read_text())
        return result
