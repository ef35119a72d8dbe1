"""Evaluation: the ladder, the ceiling, and files of other worlds."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from marlab.fish.measure import compare
from marlab.fish.measure.config import EvalConfig
from marlab.fish.measure.foresight import Search
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.learned import LearnedPredator, make_predator, save_predator
from marlab.fish.training import evaluate as evaluate_module
from marlab.fish.training.config import FishTrainConfig
from marlab.fish.training.evaluate import evaluate, evaluate_checkpoint, reference_lines, sea_of, training_steps
from marlab.fish.training.networks import KIND, PATTERN, find_checkpoint, load_policy
from marlab.fish.training.train import FishTrainer
from marlab.lab.config import altered
from marlab.lab.errors import UserError
from marlab.lab.runs.checkpoint import CheckpointStore
from marlab.lab.runs.measurements import FOLDER, Measurements
from marlab.lab.runs.run import Run, RunOptions
from tests.fish.cases import SMALL
from tests.reach import not_digested


def test_eval_compares_with_the_ladder_and_the_ceiling(tmp_path: Path) -> None:
    file = CheckpointStore(tmp_path, KIND, PATTERN).save(1, FishTrainer(SMALL).state_dict())
    settings = EvalConfig(str(file), episodes=3, fish=6, device="cpu")
    report = evaluate_checkpoint(file, settings, tmp_path)
    assert report is not None
    assert set(report.scores) == {"policy", "random", "hold", "brake", "flee", "south", "sidestep"}
    assert report.bounds is not None and 0.5 < report.bounds[0] <= report.bounds[1] <= 1.0
    for score in report.scores.values():
        assert score.survival.mean() <= report.bounds[1] + 1e-9
    again = evaluate_checkpoint(file, settings, tmp_path / "again", beside=report)
    assert again is not None and again.results() == report.results()
    saved = json.loads((tmp_path / "eval_multi_summary.json").read_text())
    assert saved["policies"]["policy"]["survival"] == pytest.approx(float(report.scores["policy"].survival.mean()))


@pytest.mark.long
def test_an_evaluation_without_time_says_so_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marlab.fish.measure.compare.ARENAS", 2)
    file = CheckpointStore(tmp_path, KIND, PATTERN).save(1, FishTrainer(SMALL).state_dict())
    settings = EvalConfig(str(file), episodes=4, fish=6, device="cpu", ceiling=False, film_fish=4)
    with monkeypatch.context() as stopping:
        parts = iter([False] * 7)
        stopping.setattr(Run, "should_stop", lambda run: next(parts, True))
        stopping.setattr(Run, "must_stop", lambda run: True)
        run = evaluate(settings, RunOptions(output_dir=tmp_path / "eval"), quiet=True)
    assert run.status == "interrupted" and "of 2 x 6 held-out fish survive" in run.verdict[0]
    assert "--resume" in run.verdict[-1] and not (run.path / "multi_fish_eval.mp4").exists()
    assert run.results["survival"]["note"] == "2 x 6 held-out fish"
    again = evaluate(settings, RunOptions(output_dir=tmp_path / "eval", resume=True), quiet=True)
    assert again.status == "finished" and "of 4 x 6 held-out fish survive" in again.verdict[0]
    assert again.verdict[-1] == f"Next: `marlab fish watch {file}` shows it."
    assert (run.path / "multi_fish_eval.mp4").exists()


def test_a_foreign_checkpoint_is_refused(tmp_path: Path) -> None:
    CheckpointStore(tmp_path, "hunt/ppo", PATTERN).save(1, {})
    with pytest.raises(UserError, match="written by 'hunt/ppo'"):
        evaluate(EvalConfig(str(tmp_path / "model_iter_1.pt")), RunOptions(output_dir=tmp_path / "eval"))
    assert not (tmp_path / "eval").exists()


class Killed(BaseException):
    """Ends an evaluation like a kill: nobody handles it."""


def test_cut_anywhere_and_resumed_it_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "ARENAS", 1)
    file = CheckpointStore(tmp_path, KIND, PATTERN).save(1, FishTrainer(SMALL).state_dict())
    config = EvalConfig(str(file), episodes=4, fish=4, baselines=False, ceiling=False, device="cpu")
    whole = evaluate(config, RunOptions(output_dir=tmp_path / "whole"), quiet=True)
    put, left = Measurements.put, [0]

    def killed(self: Measurements, value: object, *key: object) -> None:
        if left[0] == 0:
            raise Killed
        left[0] -= 1
        put(self, value, *key)

    for number, cut in enumerate((0, 1, 2)):
        left[0] = cut
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(Measurements, "put", killed)
            evaluate(config, RunOptions(output_dir=tmp_path / "cut", resume=number > 0), quiet=True)
    assert len(list((tmp_path / "cut" / FOLDER).iterdir())) == 3
    resumed = evaluate(config, RunOptions(output_dir=tmp_path / "cut", resume=True), quiet=True)
    assert resumed.results == whole.results and resumed.status == whole.status == "finished"
    for name in ("eval_multi_summary.json", "death_stats.json"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert len(list((tmp_path / "cut" / FOLDER).iterdir())) == 4
    monkeypatch.setattr(compare, "run_probe", lambda *arguments: pytest.fail("played again"))
    assert evaluate(config, RunOptions(output_dir=tmp_path / "cut", resume=True), quiet=True).results == whole.results


def test_the_code_that_measures_is_all_in_its_identity() -> None:
    settings = ("training.config", "training.assemble", "measure.config", "schedule", "starts")
    told = ("envs.frame", "measure.record", "measure.stats")  # pictures and what is said of the deaths
    plumbing = ("marlab.lab", *(f"marlab.fish.{name}" for name in (*settings, *told)))
    starts = ["marlab.fish.measure.compare", "marlab.fish.training.networks"]
    assert not_digested(starts, compare.CODE, plumbing) == set()


def test_reference_lines_have_the_length_of_the_episodes_they_stand_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marlab.fish.training.evaluate.REFERENCE_EPISODES", 3)
    config = altered(FishTrainConfig(), tail_force_reset_steps=60, eval_multi_fish=12)
    whole, training = reference_lines(config, torch.device("cpu"))
    assert training_steps(config) == 60 and training_steps(altered(config, tail_force_reset_steps=0)) == 500
    assert training["possible at best"] == whole["possible at best"]
    assert training["random"] > whole["random"] and all(training[name] >= whole[name] for name in whole)


def test_reference_lines_of_a_hunted_sea_are_of_its_own_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate_module, "REFERENCE_EPISODES", 2)
    monkeypatch.setattr(evaluate_module, "REACTIVE", ("hold", "swerve"))  # two of them are enough
    config = altered(FishTrainConfig(), predator_mode="pursuit", eval_multi_fish=4)
    whole, _ = reference_lines(config, torch.device("cpu"))
    assert list(whole) == ["random", "swerve", "possible at best"]


@pytest.mark.parametrize(
    ("name", "sea", "fish"), [("best", "trained", 96), ("best", "pack", 32), ("pull", "trained", 32)]
)
def test_a_sea_is_played_with_as_many_fish_as_it_has(name: str, sea: Any, fish: int) -> None:
    trained = load_policy(find_checkpoint(name))
    assert sea_of(EvalConfig(name, sea=sea), trained).num_fish == fish
    assert sea_of(EvalConfig(name, sea=sea, fish=5), trained).num_fish == 5


def test_a_predator_of_self_play_can_hunt_in_an_evaluation(tmp_path: Path) -> None:
    save_predator(LearnedPredator(make_predator((8,)), (8,), 1), tmp_path / "p.pt")
    quick: Any = {"episodes": 2, "fish": 2, "device": "cpu", "baselines": False, "replays": 0}
    run = evaluate(
        EvalConfig("pack", predator=str(tmp_path / "p.pt"), **quick),
        RunOptions(output_dir=tmp_path / "eval"),
        quiet=True,
    )
    assert all("of own-" in case for case in json.loads((run.path / "cases.json").read_text())["survival"][""])
    with pytest.raises(UserError, match="nobody"):
        evaluate(EvalConfig("pack", predator="nobody.pt", **quick), RunOptions(output_dir=tmp_path / "no"), quiet=True)
    assert not (tmp_path / "no").exists()


def test_an_evaluation_can_look_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The upper reference is at least as good as the policy, and the share that the policy reaches is told."""
    monkeypatch.setattr(evaluate_module, "Search", partial(Search, candidates=2, rounds=1, stride=100, window=100))
    settings = EvalConfig(
        "pull", episodes=2, fish=2, device="cpu", look_ahead=1, baselines=False, ceiling=False, replays=0
    )
    run = evaluate(settings, RunOptions(output_dir=tmp_path / "eval"), quiet=True)
    told = json.loads((run.path / "look_ahead.json").read_text())["survival"]
    assert {len(each) for each in told.values()} == {1}
    assert told["mended with the true dynamics"] >= told["policy"]
    assert 0 < run.results["share of the upper reference"]["value"] <= 1
    assert any("of that (1 arenas)" in sentence for sentence in run.verdict)


def test_the_last_film_has_the_length_and_speed_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr(evaluate_module, "film_worst", lambda *args, **options: asked.update(options) or ["a film"])
    config = EvalConfig("best", film_steps=7, film_fps=5)
    cpu = torch.device("cpu")
    assert evaluate_module._film(
        compare.ladder(cpu)["hold"], SeaConfig(num_fish=2), [1], config, tmp_path, cpu, None, True
    )
    assert (asked["max_steps"], asked["fps"]) == (7, 5)
