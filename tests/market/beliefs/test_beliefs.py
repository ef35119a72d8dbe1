"""`marlab market beliefs` from recorded worlds to tables, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marlab.lab.errors import UserError
from marlab.lab.report.draw import draw
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import RunOptions
from marlab.market.beliefs import beliefs as beliefs_module
from marlab.market.beliefs.beliefs import beliefs, parts, read_all, types_of
from marlab.market.beliefs.settings import BeliefsConfig
from marlab.market.rules.beliefs import load_observer
from tests.market.beliefs_cases import named_worlds
from tests.market.vector_worlds import GOLDEN


def test_worlds_become_an_observer_with_tables_and_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "worlds").mkdir()
    named_worlds(tmp_path / "worlds")
    config = BeliefsConfig(
        tmp_path / "worlds", types=("A", "B"), units=2, steps=5, batch=256, width=8, held_out=0.3, device="cpu"
    )
    run = beliefs(config, RunOptions(output_dir=tmp_path / "run"), quiet=True)
    observer = load_observer(run.path / "observer.npz")
    assert observer.types == ("A", "B") and run.status == "finished" and len(run.verdict) >= 2
    assert (run.path / "figures" / "days.png").exists() and (run.path / "figures" / "reliability.png").exists()
    told = json.loads((run.path / "results.json").read_text())
    assert told["held_out_worlds"] == 2 and set(told["by_type"]) == {"A", "B"}
    table = (run.path / "tables.md").read_text()
    assert "days of talking" in table
    (run.path / "tables.md").unlink()
    monkeypatch.setattr("marlab.market.beliefs.figures.draw", lambda *_: None)  # drawn once is enough
    assert draw(read_run(run.path)).verdict == run.verdict and (run.path / "tables.md").read_text() == table


def test_every_world_has_one_part() -> None:
    part = parts(20, BeliefsConfig(held_out=0.2, validation=0.1))
    assert [(part == which).sum() for which in range(3)] == [14, 2, 4]


def test_types_are_those_who_play_often() -> None:
    worlds = named_worlds()
    assert types_of(worlds, ()) == ("A", "B", "C") and types_of([*worlds[1:], *worlds, *worlds[1:]], ()) == ("A", "B")
    with pytest.raises(UserError, match="Zoe plays in none"):
        types_of(worlds, ("A", "Zoe"))
    with pytest.raises(UserError, match="only the type A"):
        types_of(worlds, ("A",))


def test_folders_without_worlds_and_worlds_without_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a folder"):
        read_all(tmp_path / "none")
    with pytest.raises(UserError, match="holds 0 recorded worlds"):
        read_all(tmp_path)
    with pytest.raises(UserError, match="does not say who played"):
        read_all(GOLDEN)


def test_the_observer_that_comes_with_the_package_is_small_and_usable() -> None:
    path = Path(beliefs_module.__file__).parents[1] / "shipped" / "observer.npz"
    observer = load_observer(path)
    assert len(observer.types) == 13 and "LitaAgentHRL" in observer.types and path.stat().st_size < 300_000
