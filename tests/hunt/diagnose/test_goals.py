"""Models of others, measured anew from their weights."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from marlab.hunt.diagnose import goals
from marlab.hunt.diagnose.goals import diagnose_goals, open_goal_run
from marlab.hunt.diagnose.online import diagnose_transfer
from marlab.hunt.selfplay.gates import Gates
from marlab.lab.errors import UserError
from tests.hunt.diagnose.conftest import Runs


def test_what_is_checked_is_what_is_measured(runs: Runs) -> None:
    run = open_goal_run(runs["goals"], "codes", None)
    section, splits = diagnose_goals(run, Gates(), belief_games=4)
    values = {check.key: check.value for check in section.checks}
    scores = splits["validation"].scores
    assert values["MOA/top-1"] == scores.top1 and values["MOA/top-3"] == scores.top3
    assert values["MOA/one batch by heart"] == pytest.approx(0.005)  # as the run recorded it
    assert {check.module for check in section.checks} == {"goal VAE", "MOA", "belief"}
    exact = splits["validation"].exact("known")
    assert exact.cross_entropy <= scores.cross_entropy  # nobody predicts better than the rules themselves
    assert run.learnt_after_exit == 0.0


def test_a_learned_belief_is_held_against_what_four_steps_tell(runs: Runs) -> None:
    assert goals.belief_bar(0.982, Gates().belief_learned) == pytest.approx(0.90, abs=0.001)  # as on msh_4x4
    assert goals.belief_bar(0.5, 0.83) == 0.5 and goals.belief_bar(1.0, 1.0) == 1.0
    run = open_goal_run(runs["goals"], "codes", None)
    section, _ = diagnose_goals(run, Gates(), belief_games=4)
    check = next(check for check in section.checks if "learned" in check.key)
    exact = section.figures["belief"]["exact"]["true_type_by_step"][4]
    assert check.gate == pytest.approx(0.5 + 0.83 * (exact - 0.5))


def test_one_batch_by_heart_is_tried_where_no_record_is(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(runs["goals"], tmp_path / "run")
    (tmp_path / "run" / "eval" / "overfit.json").unlink()
    monkeypatch.setattr(goals, "OVERFIT_STEPS", 2)
    section, _ = diagnose_goals(open_goal_run(tmp_path / "run", "codes", None), Gates(), belief_games=0)
    tried = next(check for check in section.checks if check.name == "one batch by heart")
    assert tried.value is not None and tried.value > 0.1  # two steps are not enough


def test_models_that_are_told_the_shortest_ways_are_judged_with_them(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(goals, "OVERFIT_STEPS", 2)
    run = open_goal_run(runs["told"], "told", None)
    section, splits = diagnose_goals(run, Gates(), belief_games=0)
    assert splits["validation"].data.seen.shape[1] > splits["validation"].data.planes[0].numel() + 20
    diagnose_transfer(run, splits["validation"], [], 8, section)
    assert {"offline validation", "RAND"} <= set(section.figures["transfer"])


def test_a_run_without_its_evaluation_is_refused(runs: Runs, tmp_path: Path) -> None:
    shutil.copytree(runs["goals"], tmp_path / "run")
    (tmp_path / "run" / "eval" / "final.json").unlink()
    with pytest.raises(UserError, match=r"final\.json does not exist"):
        open_goal_run(tmp_path / "run", "codes", None)
