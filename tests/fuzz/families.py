"""All kinds of cases by their names."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz import configs, data, folders, lines, stage, weights
from tests.fuzz.guard import Case

FAMILIES: dict[str, Callable[[int, int], Case]] = {
    "lines": lines.case, "configs": configs.case, "folders": folders.case, "weights": weights.case, "data": data.case,
    "market": data.market_case, "layers": weights.market_case,
}  # fmt: skip


def prepare() -> None:
    """Make what the cases damage, before any tripwire is set."""
    for make in (stage.runs, stage.hunt_data, stage.market_logs, stage.trackers, stage.samples, stage.starts):
        make()
    for kind in stage.MAKERS:
        stage.weights(kind)


def case(family: str, seed: int, number: int) -> Case:
    """The case of a number: the same for ever, as long as the program's flags and files are the same."""
    return FAMILIES[family](seed, number)
