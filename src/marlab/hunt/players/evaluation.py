"""The evaluation that ends every training of the hunt: kept in the run, and shown as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marlab.lab.runs.files import write_json
from marlab.lab.runs.run import Run

RESULTS = ("reward", "reward_learners", "seat_spread")
"""What of an evaluation is kept as results of the run."""


def keep_evaluation(run: Run, evaluation: dict[str, Any]) -> dict[str, Any]:
    """Write fresh episodes, drawn ("sampled") and by best actions ("greedy"), to evaluation.json and to the results."""
    write_json(run.path / "evaluation.json", evaluation)
    for mode in ("sampled", "greedy"):
        report = evaluation[mode]["over_seeds"]
        run.add_results({f"{name}_{mode}": report[name] for name in RESULTS})
    return evaluation


def describe(evaluation: Mapping[str, Any]) -> str:
    """The evaluation as a short table."""
    lines = [f"{'':<10}{'seed':>6}{'reward':>9}{'learner':>9}  {'per player':<24}{'spread':>7}{'length':>8}  outcomes"]
    for mode in ("sampled", "greedy"):
        for seed, report in evaluation[mode]["seeds"].items():
            players = " ".join(f"{p['value']:.2f}" for p in report["reward_player"])
            outcomes = " ".join(f"{k} {v:.2f}" for k, v in report["outcomes"].items())
            reward, learner = report["reward"]["value"], report["reward_learners"]["value"]
            head = f"{mode:<10}{seed:>6}{reward:>9.3f}{learner:>9.3f}  {players:<24}"
            lines.append(f"{head}{report['seat_spread']:>7.3f}{report['length']:>8.2f}  {outcomes}")
    return "\n".join(lines)
