"""What a run is judged by, stored in its record: lists, comparisons and sweeps need not know any world.

    class FishTrainConfig:
        judged_by: ClassVar = Judged(("best model: survival", "training survival"), "custom/avg_survival_rate")

Values of single cases (arenas, configs, starts) go to `cases.json` beside the record, so that two runs that met the
same cases can be compared in pairs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from marlab.lab.errors import UserError
from marlab.lab.runs.files import read_json, write_json

Better = Literal["higher", "lower"]
CASES = "cases.json"
Cases = dict[str, dict[str, float]]
"""Training seed (empty where there is none) -> case -> value."""


@dataclass(frozen=True)
class Judged:
    """The figure that counts, and which way is better."""

    results: tuple[str, ...] = ()
    """Names of results: the first one that a run has is its key figure."""
    metric: str | None = None
    """The metric whose curve shows how it came about."""
    better: Better = "higher"

    def stored(self) -> dict[str, Any]:
        return {**asdict(self), "results": list(self.results)}

    def key(self, results: Mapping[str, Any]) -> str | None:
        """The name of the key figure among the results of a run."""
        return next((name for name in self.results if name in results), None)


def is_stored(value: Any) -> bool:
    """Whether a value from a file says what a run is judged by."""
    if value is None:
        return True
    if not isinstance(value, dict) or not isinstance(value.get("results"), list):
        return False
    texts = [*value["results"], *([] if value.get("metric") is None else [value["metric"]])]
    return all(isinstance(text, str) for text in texts) and value.get("better") in ("higher", "lower")


def judged(stored: Any) -> Judged:
    """What run.json holds; nothing is known of a run that does not say."""
    return Judged(tuple(stored["results"]), stored.get("metric"), stored["better"]) if stored else Judged()


def write_cases(folder: Path, measure: str, cases: Mapping[Any, Mapping[str, Any]]) -> None:
    """Keep the values of a result's single cases; the same measure again replaces them."""
    known = read_cases(folder)
    known[measure] = {
        str(seed): {case: float(value) for case, value in row.items() if math.isfinite(value)}
        for seed, row in cases.items()
    }
    write_json(folder / CASES, known)


def read_cases(folder: Path) -> dict[str, Cases]:
    """Result -> its cases; empty where a run has none."""
    if not (folder / CASES).exists():
        return {}
    stored = read_json(folder / CASES, lambda why: UserError(f"The cases of a run cannot be read: {why}."))
    if not (isinstance(stored, dict) and all(map(_is_cases, stored.values()))):
        raise UserError(f"{folder / CASES} is not a table of results, seeds, cases and numbers.")
    return stored


def _is_cases(value: Any) -> bool:
    rows = list(value.values()) if isinstance(value, dict) else [None]
    numbers = [x for row in rows if isinstance(row, dict) for x in row.values()]
    plain = all(isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x) for x in numbers)
    return plain and all(isinstance(row, dict) for row in rows)
