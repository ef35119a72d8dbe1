"""The evaluation at the end of a training: in the run's results, in a file, and as a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from marlab.hunt.players.evaluation import describe, keep_evaluation
from marlab.hunt.ppo.config import PPOTrainConfig
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import Run, RunOptions

REPORT: dict[str, Any] = {
    "reward": {"value": 2.5, "low": 2.0, "high": 3.0},
    "reward_learners": {"value": 2.25},
    "reward_player": [{"value": 2.0}, {"value": 3.0}],
    "seat_spread": 1.0,
    "length": 7.5,
    "outcomes": {"none": 0.25, "stag_2": 0.75},
}
EVALUATION = {mode: {"seeds": {"3": REPORT}, "over_seeds": REPORT} for mode in ("sampled", "greedy")}


def test_results_and_file(tmp_path: Path) -> None:
    with Run.open("hunt", PPOTrainConfig(), RunOptions(output_dir=tmp_path / "run")) as run:
        assert keep_evaluation(run, EVALUATION) is EVALUATION
    results = read_run(tmp_path / "run").results
    assert results["reward_greedy"]["value"] == 2.5 and results["seat_spread_sampled"] == 1.0
    assert json.loads((tmp_path / "run" / "evaluation.json").read_text()) == EVALUATION


def test_the_table_has_a_line_per_seed_and_mode() -> None:
    lines = describe(EVALUATION).splitlines()
    assert len(lines) == 3 and lines[1].startswith("sampled") and lines[2].startswith("greedy")
    assert "2.00 3.00" in lines[1] and "stag_2 0.75" in lines[1]
