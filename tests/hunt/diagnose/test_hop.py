"""Trainings of planning agents beside the original's, and which module is blamed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from marlab.hunt.diagnose.command import DiagnoseConfig
from marlab.hunt.diagnose.hop import diagnose_hop, open_hop_run
from marlab.hunt.diagnose.parts import Section as Found
from marlab.hunt.diagnose.parts import verdicts
from marlab.hunt.diagnose.report import diagnose
from marlab.hunt.game.config import game_config
from marlab.hunt.selfplay.config import PipelineConfig
from marlab.hunt.selfplay.gates import Gates
from marlab.hunt.training.run import train_hop
from marlab.lab.errors import UserError
from marlab.lab.runs.run import RunOptions
from tests.hunt.hop_cases import small_training
from tests.hunt.training_records import falling, write_training


def judged(path: Path, out: Path | None = None) -> tuple[Found, dict[str, str]]:
    section = diagnose_hop(open_hop_run(path, path.name), Gates(), out)
    return section, {v.module: v.status for v in verdicts(section.checks)}


def test_a_healthy_training_passes_and_is_shown_beside_the_originals(tmp_path: Path) -> None:
    path = write_training(tmp_path / "mcts", "hopplus-mcts")
    section, said = judged(path, tmp_path)
    assert said == {"MOA": "pass", "planner": "pass", "self-play": "pass"}
    online, reward, plan = section.tables
    assert online.title.startswith("Predictions") and reward.title.startswith("Mean reward")
    top1 = next(row for row in online.rows if row[0] == "top-1")
    assert top1[1] == pytest.approx(0.4 + 0.39 + 0.025) and top1[3:] == (0.62, 0.30)
    stay = next(row for row in online.rows if row[0] == "recall of stay")
    assert stay[4] == 0.92
    ours, original = reward.rows
    assert ours[1:3] == (2, 40) and ours[3] == pytest.approx(40 * 36 / 3600)
    assert original[5:7] == (1.5, 0.726)
    assert {row[0]: row[1:] for row in plan.rows}["mean depth [steps]"] == pytest.approx((4.0, 7.75))
    assert [p.file for p in section.pictures] == ["training-mcts.png", "online-mcts.png"]
    assert all((tmp_path / p.file).stat().st_size > 20_000 for p in section.pictures)
    published = {check.name: check.original for check in section.checks}
    assert published["mean reward"] == 0.726 and published["last tenth over the highest"] == pytest.approx(0.484)


def test_a_variant_or_game_without_published_curves_is_shown_alone(tmp_path: Path) -> None:
    other = write_training(tmp_path / "hop", "hop")
    big = write_training(tmp_path / "big", "hopplus-mcts", game=game_config("msh_8x8_b5"))
    for path in (other, big):
        section, _ = judged(path)
        assert all(check.original is None for check in section.checks)
        assert len(next(t for t in section.tables if "reward" in t.title).rows) == 1


def test_what_was_reached_and_lost_fails_self_play(tmp_path: Path) -> None:
    section, said = judged(write_training(tmp_path / "fell", "hopplus-mcts", reward=falling))
    assert said == {"MOA": "pass", "planner": "pass", "self-play": "fail"}
    kept = next(check for check in section.checks if check.name == "last tenth over the highest")
    assert kept.value is not None and kept.value < 0.6


def test_plans_as_good_as_uniform_are_the_planners_fault(tmp_path: Path) -> None:
    """The original's HOP+: behaviour near random because beta times the spread is small; models are not to blame."""
    path = write_training(tmp_path / "flat", "hopplus", reward=lambda t: 0.68, entropy=1.44, spread=0.02, excess=0.01)
    _, said = judged(path)
    assert said == {"MOA": "pass", "planner": "fail", "self-play": "blocked"}


def test_bad_predictions_are_the_models_fault(tmp_path: Path) -> None:
    _, said = judged(write_training(tmp_path / "blind", "hop", reward=falling, excess=3.0))
    assert said == {"MOA": "fail", "planner": "pass", "self-play": "blocked"}


def test_one_learner_among_rules_has_no_gate_of_self_play(tmp_path: Path) -> None:
    _, said = judged(write_training(tmp_path / "single", "hop", roles="HOP,NS,NH,NH"))
    assert "self-play" not in said


def test_fresh_episodes_count_more_than_the_record(tmp_path: Path) -> None:
    path = write_training(tmp_path / "run", "hop")
    evaluation = {"sampled": {"over_seeds": {"reward": {"value": 1.25}}}}
    (path / "evaluation.json").write_text(json.dumps(evaluation))
    section, said = judged(path)
    assert said["self-play"] == "fail"
    assert next(c for c in section.checks if c.name == "mean reward").value == 1.25


@pytest.mark.long
def test_the_report_shows_all_trainings_in_one_figure(tmp_path: Path) -> None:
    """A real training of the smallest size, and two records."""
    config = small_training(seeds="0,1", pipeline=PipelineConfig(gates="warn"))
    real = train_hop(config, RunOptions(output_dir=tmp_path / "real"), quiet=True).path
    others = [write_training(tmp_path / name, name) for name in ("hopplus", "hopplus-mcts")]
    out = tmp_path / "out"
    report = diagnose(DiagnoseConfig(run=str(real), runs=tuple(map(str, others)), output_dir=out))
    shown = report.sections[-1]
    assert [p.file for p in shown.pictures] == ["trainings.png", "trainings-2.png"]
    assert all((out / p.file).exists() for section in report.sections for p in section.pictures)
    levels = report.sections[0].figures["training"]["levels"]
    assert levels[0]["seeds"] == 2 and np.isfinite(levels[0]["highest"])
    assert {v.module for v in report.verdicts} >= {"planner", "self-play"}


def test_a_training_without_a_record_is_refused(tmp_path: Path) -> None:
    path = write_training(tmp_path / "run", "hop")
    (path / "metrics.jsonl").unlink()
    with pytest.raises(UserError, match="has no metrics"):
        diagnose(DiagnoseConfig(run=str(path)))
