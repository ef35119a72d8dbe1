"""Groups of runs with known values, for the tests of comparisons."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from marlab.lab.runs.judged import write_cases
from tests.lab.report.cases import make_run

JUDGED = {"results": ["final score", "score"], "metric": "train/score", "better": "higher"}


def make_training(
    root: Path, name: str, value: float, seed: int = 0, cases: Mapping[str, float] | None = None,
    curve: Sequence[float] = (), judged: Any = JUDGED, world: str = "toy", **settings: Any,
) -> str:  # fmt: skip
    """A run with one result `score`, its cases and its curve; the path."""
    path = make_run(
        root, f"{world}/{name}", {"rate": 0.1, "net": {"width": 8}, **settings, "seed": seed}, seed=seed,
        results={"score": {"value": value, "unit": "points"}, "speed": 2.0 * value, "told": "yes"}, judged_by=judged,
    )  # fmt: skip
    if cases is not None:
        write_cases(path, "score", {"": cases})
    rows = [{"step": i + 1, "time": 1.0, "train/score": y} for i, y in enumerate(curve)]
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def two_groups(root: Path, a: Sequence[float], b: Sequence[float], first_seed_of_b: int = 0) -> list[str]:
    """Trainings of two rates, one value per seed, with curves that rise to it."""
    runs = [make_training(root, f"a{i}", v, i, curve=[v - 1, v]) for i, v in enumerate(a)]
    later = enumerate(b, first_seed_of_b)
    return runs + [make_training(root, f"b{i}", v, i, curve=[v - 1, v], rate=0.3) for i, v in later]
