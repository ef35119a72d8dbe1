"""Trainings of planning agents beside the original's, and which module is blamed."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from marlab.hunt.diagnose.checks import Section as Found
from marlab.hunt.diagnose.checks import verdicts
from marlab.hunt.diagnose.config import DiagnoseConfig
from marlab.hunt.diagnose.selfplay import _pairs_section, diagnose_training, level_rows, open_training, read_pairs
from marlab.hunt.diagnose.work import diagnose
from marlab.hunt.game.config import game_config
from marlab.hunt.players.published import REWARD_CURVES
from marlab.hunt.selfplay.config import PipelineConfig
from marlab.hunt.selfplay.gates import Gates
from marlab.hunt.training.run import train_hop
from marlab.lab.errors import UserError
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.run import RunOptions
from tests.hunt.hop_cases import small_training
from tests.hunt.training_records import falling, rising, write_training


def judged(path: Path, out: Path | None = None) -> tuple[Found, dict[str, str]]:
    section, _ = diagnose_training(open_training(path, path.name), Gates(), out)
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
    assert [p.file for p in section.pictures] == ["online-mcts.png"]
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


# --- reward over training ---------------------------------------------------------------------------------------------


def test_levels_are_means_over_seeds(tmp_path: Path) -> None:
    training = open_training(write_training(tmp_path / "plus", "hopplus"), "plus")
    assert training.reward.shape == (2, 40) and np.isnan(training.reward[:, :2]).all()
    best, end = training.level()
    mean = [rising(t) + 0.01 for t in range(2, 40)]
    assert end == pytest.approx(np.mean(mean[-4:])) and best == end  # it rises: the end is the highest mean
    assert training.hours[-1] == pytest.approx(0.4)
    assert level_rows([training])[0][4] == pytest.approx(mean[0])


def test_a_training_that_was_stopped_is_not_drawn_as_a_whole_one(tmp_path: Path) -> None:
    whole, part = (open_training(write_training(tmp_path / str(n), "hop", planned=n), "") for n in (40, 80))
    assert whole.share[-1] == 1.0 and part.share[-1] == pytest.approx(0.5)


def test_published_curves_are_whole() -> None:
    for curve in REWARD_CURVES.values():
        assert list(curve.points) == sorted(curve.points) and curve.points[0][0] == 0
        assert curve.hours > 0 and all(0.5 < value < 3 for _, value in curve.points)


# --- every pair -------------------------------------------------------------------------------------------------------

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
    run = read_pairs(read_metrics(tmp_path / "run" / "metrics.jsonl"))
    assert list(run.scores) == [(i, j) for i in range(1, 5) for j in range(1, 5) if i != j]
    lines = run.scores[(3, 2)]["acc_top1"]
    assert lines.shape == (2, ITERATIONS)
    assert lines[1, 7] == pytest.approx(value(1, 3, 2, 7))
    assert np.isnan(run.scores[(1, 4)]["acc_top1"][:, :5]).all()
    assert np.isnan(run.scores[(2, 1)]["per_class_acc/6"][:, :10]).all()


def test_the_end_of_training_is_shown_beside_the_original_and_drawn(tmp_path: Path) -> None:
    write_metrics(tmp_path / "run")
    section = _pairs_section("hop", read_pairs(read_metrics(tmp_path / "run" / "metrics.jsonl")), tmp_path)
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
    section = _pairs_section("planner", read_pairs([{"step": 0, "plan/beta": math.pi}]), tmp_path)
    assert section.remarks and not section.tables and not section.pictures
