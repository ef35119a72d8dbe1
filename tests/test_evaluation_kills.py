"""Evaluations that are killed ten times at random moments: what comes out equals what an undisturbed one finds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from marlab.cli import main
from marlab.lab.runs.records import read_run
from tests.kills import run_with_kills

pytestmark = pytest.mark.long


def both(words: str, folder: Path, seed: int, **more: Any) -> tuple[Path, Path]:
    """(the run that was killed, the run that was not)."""
    killed, smooth = folder / "killed", folder / "smooth"
    how = run_with_kills([*words.split(), "--output-dir", str(killed)], killed, seed=seed, **more)
    assert how.kills == 10, "it ended before ten kills: make it longer"
    assert main([*words.split(), "--output-dir", str(smooth)]) == 0
    assert read_run(killed).status == read_run(smooth).status == "finished"
    assert read_run(killed).results == read_run(smooth).results
    return killed, smooth


def test_hunt_eval(tmp_path: Path) -> None:
    words = (
        "hunt eval hop=hop_4x4?simulations=4&trees=1 --agents EXPL --parts self-play scenarios cross-play "
        "--scenarios visit_mixture NS+2NH 3NH visit_grim 3RAND --runs 4 --steps 48 --window 36 --layouts 30 "
        "--episodes 4 --no-figures --device cpu --engine serial --quiet"
    )
    killed, smooth = both(words, tmp_path, 1, preload=["marlab.hunt.evaluate.run"])
    assert (killed / "scorecard.json").read_bytes() == (smooth / "scorecard.json").read_bytes()
    files = {file.name: file.read_bytes() for file in (smooth / "measured").iterdir()}
    assert {file.name: file.read_bytes() for file in (killed / "measured").glob("*.json")} == files


def test_fish_eval(tmp_path: Path) -> None:
    words = "fish eval best --episodes 301 --fish 8 --device cpu"
    killed, smooth = both(words, tmp_path, 2, preload=["marlab.fish.training.evaluate"], spread_s=1.0)
    for name in ("eval_multi_summary.json", "death_stats.json"):
        assert (killed / name).read_bytes() == (smooth / name).read_bytes()


TIMINGS = ("cpu_s", "ms_50", "ms_95")


def test_market_play(tmp_path: Path) -> None:
    pytest.importorskip("scml")
    words = (
        "market play --agents RandomStdAgent GreedyStdAgent --configs 8 --days 6 6 --shapes 2x2 --no-trials "
        "--engine local --workers 1 --quiet"
    )
    killed, smooth = both(words, tmp_path, 3, preload=["marlab.market.arena.play"])
    assert worlds(killed) == worlds(smooth)
    assert (killed / "tables.md").exists()


def worlds(run: Path) -> dict[str, Any]:
    """The records of all worlds without what was timed."""
    found = {}
    for file in (run / "worlds").glob("*.json"):
        record = json.loads(file.read_text())
        seats = [{k: v for k, v in seat.items() if k not in TIMINGS} for seat in record["seats"]]
        found[file.name] = {k: v for k, v in {**record, "seats": seats}.items() if k not in TIMINGS}
    return found
