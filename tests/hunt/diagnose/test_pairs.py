"""The scores of every pair of observer and other, from a run's metrics."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from marlab.hunt.diagnose.pairs import diagnose_pairs, open_pair_run

PLAYERS, ITERATIONS = 4, 40


def value(seed: int, i: int, j: int, t: int) -> float:
    return 0.2 + 0.01 * t + 0.02 * j + 0.001 * i + 0.005 * seed


def write_metrics(path: Path) -> None:
    """Two seeds; nobody's hare hunts are seen before iteration 10, and player 4 is not modelled by player 1 at once."""
    rows = []
    for t in range(ITERATIONS):
        row: dict[str, float] = {"step": t, "plan/beta": 5.0}
        for seed in (0, 1):
            for i in range(1, PLAYERS + 1):
                for j in (p for p in range(1, PLAYERS + 1) if p != i):
                    if (i, j) == (1, 4) and t < 5:
                        continue
                    head = f"seed_{seed}/moa/{i}->{j}"
                    top = value(seed, i, j, t)
                    row |= {f"{head}/acc_top1": top, f"{head}/acc_top3": top + 0.1, f"{head}/ce_loss": 2 - top}
                    row |= {f"{head}/floor": 0.5, f"{head}/excess": 1.5 - top, f"{head}/per_class_acc/0": top}
                    if t >= 10:
                        row[f"{head}/per_class_acc/6"] = 1 - top
        rows.append(row)
    path.mkdir(exist_ok=True)
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_pairs_are_read_by_observer_other_and_seed(tmp_path: Path) -> None:
    write_metrics(tmp_path / "run")
    run = open_pair_run(tmp_path / "run", "hop")
    assert list(run.scores) == [(i, j) for i in range(1, 5) for j in range(1, 5) if i != j]
    lines = run.scores[(3, 2)]["acc_top1"]
    assert lines.shape == (2, ITERATIONS)
    assert lines[1, 7] == pytest.approx(value(1, 3, 2, 7))
    assert np.isnan(run.scores[(1, 4)]["acc_top1"][:, :5]).all()
    assert np.isnan(run.scores[(2, 1)]["per_class_acc/6"][:, :10]).all()


def test_the_end_of_training_is_shown_beside_the_original_and_drawn(tmp_path: Path) -> None:
    write_metrics(tmp_path / "run")
    section = diagnose_pairs(open_pair_run(tmp_path / "run", "hop"), tmp_path)
    (table,) = section.tables
    told = {row[0]: row[1:] for row in table.rows}
    expected = np.mean([value(seed, 4, 1, t) for seed in (0, 1) for t in range(36, 40)])
    assert told["4 -> 1"][0] == pytest.approx(expected) and told["4 -> 1"][3] == pytest.approx(0.5)
    assert told["original, before its buffer was mended"][2] == "9.75 to 10.3"
    assert section.figures["pairs"]["2->3"]["per_class_acc/6"] == pytest.approx(
        1 - np.mean([value(seed, 2, 3, t) for seed in (0, 1) for t in range(36, 40)])
    )
    assert [picture.file for picture in section.pictures] == ["pairs-hop.png", "pair-recall-hop.png"]
    assert all((tmp_path / picture.file).stat().st_size > 10_000 for picture in section.pictures)


def test_a_run_without_models_of_others_says_so(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"step": 0, "plan/beta": math.pi}) + "\n")
    section = diagnose_pairs(open_pair_run(tmp_path, "planner"), tmp_path)
    assert section.remarks and not section.tables and not section.pictures
