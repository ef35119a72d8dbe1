"""The whole command on recorded worlds, and again after it was stopped."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from marlab.lab.errors import UserError
from marlab.lab.runs.run import Run, RunOptions
from marlab.market.clones.clone import clone, draw_again
from marlab.market.clones.command import CloneCommand
from marlab.market.vector.clones import ClonePack, load
from marlab.market.vector.clones.network import new_weights
from tests.market.clone_cases import write_small_worlds


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recorded")
    write_small_worlds(path)
    return path


def small(folder: Path, repeats: int = 0) -> CloneCommand:
    return CloneCommand(
        experts=("AS0", "PenguinAgent"), recorded=folder, units=3, steps=2, batch=16, hidden=8, repeats=repeats,
        device="cpu", quiet=True,
    )  # fmt: skip


def test_clones_tables_and_figures_come_out(folder: Path, tmp_path: Path) -> None:
    run = clone(small(folder, repeats=1), RunOptions(output_dir=tmp_path / "run"))
    pack = load(run.path / "clones.npz")
    assert run.status == "finished" and pack.names == ("AS0", "PenguinAgent")
    split = [set(pack.about[name]) for name in ("fitted", "validation", "held_out")]
    assert all(split) and set().union(*split) == {path.stem for path in folder.glob("*.parquet")}
    assert sum(map(len, split)) == pack.about["worlds"]
    text = (run.path / "tables.md").read_text()
    for title in ("Cross-entropy", "Shares of answers", "Terms of offers", "Chance of leaving", "Scores by place"):
        assert title in text
    found = json.loads((run.path / "results.json").read_text())
    assert set(found["experts"]) == {"AS0", "PenguinAgent"} and "SyncRandomStdAgent" in found["scores"]
    assert {path.name for path in (run.path / "figures").glob("*.png")} == {"leaving.png", "lots.png", "scores.png"}
    assert run.results["cross-entropy, held out"] > 0 and len(run.verdict) == 3
    (run.path / "tables.md").unlink()
    with Run.revisit(run.path) as again:
        draw_again(again, small(folder, repeats=1).run_config(), quiet=True)
    assert (run.path / "tables.md").read_text() == text


def test_clones_can_begin_with_others_and_are_judged_by_worlds_that_are_new_to_both(
    folder: Path, tmp_path: Path
) -> None:
    everybody = sorted(path.stem for path in folder.glob("*.parquet"))
    known = everybody[: len(everybody) // 2]
    first = ClonePack(("PenguinAgent", "AS0"), new_weights(2, 8, torch.Generator().manual_seed(0)), {"fitted": known})
    file = tmp_path / "first.npz"
    file.write_bytes(first.to_bytes())
    settings = replace(small(folder), start=file, units=1, steps=1, lr=1e-9)
    pack = load(clone(settings, RunOptions(output_dir=tmp_path / "run")).path / "clones.npz")
    assert not {*pack.about["validation"], *pack.about["held_out"]} & set(known) and pack.about["start"] == "first.npz"
    for name, values in load(file).weights.items():
        assert torch.allclose(pack.weights[name], values[[1, 0]], atol=1e-4), name
    with pytest.raises(UserError, match="width 8, expected 16"):
        clone(replace(settings, hidden=16), RunOptions(output_dir=tmp_path / "other"))
    assert not (tmp_path / "other").exists()


@pytest.mark.long
def test_a_stopped_run_ends_as_one_in_one_go(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = clone(small(folder), RunOptions(output_dir=tmp_path / "whole"))
    asked = iter([False, True])
    with monkeypatch.context() as patch:
        patch.setattr(Run, "should_stop", lambda self: next(asked, True))
        stopped = clone(small(folder), RunOptions(output_dir=tmp_path / "parts"))
    assert stopped.status == "interrupted" and not (tmp_path / "parts" / "clones.npz").exists()
    again = clone(small(folder), RunOptions(output_dir=tmp_path / "parts", resume=True))
    assert again.status == "finished"
    assert (tmp_path / "parts" / "clones.npz").read_bytes() == (tmp_path / "whole" / "clones.npz").read_bytes()
    assert again.results == whole.results
