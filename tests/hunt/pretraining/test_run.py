from dataclasses import replace
from pathlib import Path

import pytest
import torch

from marlab.hunt.commands import pretrain_goals as command
from marlab.hunt.game.build import make_game
from marlab.hunt.others.config import BeliefConfig, PretrainGoalsConfig
from marlab.hunt.others.models import LoadedModels, load_goal_models
from marlab.hunt.pretraining.belief_report import learned_source, within_episode
from marlab.hunt.pretraining.run import (
    best_epoch,
    label_noise,
    load_goal_dataset,
    make_splits,
    make_trainer,
    model_spec,
    overfit_one_batch,
    pretrain_goals,
)
from marlab.lab.errors import UserError
from marlab.lab.runs.checkpoint import CheckpointError
from marlab.lab.runs.records import read_run
from marlab.lab.runs.rng import Rngs
from marlab.lab.runs.run import Run, RunOptions
from tests.hunt.offline import offline_data
from tests.hunt.others_cases import tiny

# --- training -------------------------------------------------------------------------------------------------------


def test_with_the_type_given_a_small_training_already_predicts_well():
    """5 % of the data and 16 epochs; benchmarks/hunt_pretrain.py measures the full size, where the gates are higher."""
    data = offline_data()
    config = PretrainGoalsConfig(data=data.path, goal_source="type", epochs=16, batch_size=64, learning_rate=5e-3)
    trainer = make_trainer(config, data)
    for _ in range(config.epochs):
        values = trainer.iterate()
    found = {k: values[f"moa/validation/{k}"] for k in ("top1", "top3", "ce", "free_ce", "recall/5", "recall/6")}
    assert found["top1"] >= 0.66 and found["top3"] >= 0.90
    assert found["recall/5"] >= 0.95 and found["recall/6"] >= 0.95
    assert found["ce"] < found["free_ce"] - 0.05, "knowing the goal must help"
    game = make_game(data.game)
    source = learned_source(LoadedModels(trainer.averaged.eval(), None, 0), game)
    belief = within_episode(game, source, BeliefConfig(), 60, Rngs(0), steps=4)
    assert belief[0] == 0.5 and belief[4] >= 0.75


# --- what a run leaves behind ---------------------------------------------------------------------------------------


def test_missing_models_and_data_are_told(tmp_path: Path):
    with pytest.raises(CheckpointError, match=r"holds no models\.pt"):
        load_goal_models(tmp_path)
    with pytest.raises(UserError, match="Say which data"):
        pretrain_goals(PretrainGoalsConfig())
    with pytest.raises(UserError, match="There is no data set"):
        command([str(tmp_path)])
    with pytest.raises(UserError, match="vae_epochs is 2 and prototype_epochs 3 of 5"):
        PretrainGoalsConfig(epochs=5, vae_epochs=2, prototype_epochs=3)
    with pytest.raises(UserError, match="vae_epochs is 1 and prototype_epochs 0 of 1 epochs"):
        PretrainGoalsConfig(epochs=1)
    with pytest.raises(UserError, match="batch_size is 1"):
        PretrainGoalsConfig(batch_size=1)
    with pytest.raises(UserError, match="learning_rate is 0"):
        PretrainGoalsConfig(learning_rate=0.0)


def test_command_line(tmp_path: Path):
    config = tiny()
    words = [str(config.data), "--goal-source", "none", "--epochs", "1", "--belief-games", "0", "--no-overfit-check"]
    assert command([*words, "--output-dir", str(tmp_path / "run")]) == 0
    assert load_goal_models(tmp_path / "run", goal_width=0).spec.goal_width == 0


# --- stopped, and stopped while it judges -----------------------------------------------------------------------------


def test_a_stopped_one_has_figures_results_and_a_verdict_and_goes_on(tmp_path: Path) -> None:
    config, asked = tiny(goal_source="type", belief_games=0), iter([False] * 9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "should_stop", lambda self: next(asked, True))
        run = pretrain_goals(config, RunOptions(output_dir=tmp_path / "run"), quiet=True)
    assert run.status == "interrupted" and list(run.checkpoints.glob("epoch_*_halfway.pt"))
    first, second = run.verdict
    assert first.startswith("After 1 of 2 epochs the models predict") and "--resume" in second
    assert 0 < read_run(run.path).results["validation_top1"] < 1
    assert (run.path / "figures" / "losses.png").exists() and (run.path / "figures" / "epochs.png").exists()
    run = pretrain_goals(config, RunOptions(output_dir=tmp_path / "run", resume=True), quiet=True)
    assert run.status == "finished" and "the most that anybody could" in run.verdict[0]


def test_one_that_is_stopped_while_it_judges_judges_again(tmp_path: Path) -> None:
    config = tiny(goal_source="none", belief_games=0, epochs=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "must_stop", lambda self: True)
        run = pretrain_goals(config, RunOptions(output_dir=tmp_path / "run"), quiet=True)
    assert run.status == "interrupted" and run.verdict[0].startswith("After 1 of 1 epochs")
    run = pretrain_goals(config, RunOptions(output_dir=tmp_path / "run", resume=True), quiet=True)
    assert run.status == "finished" and run.verdict[0].startswith("Whether goals help is within noise")


def test_the_best_epoch_is_the_one_that_predicts_best() -> None:
    rows = [{"step": 1}, {"step": 2, "moa/validation/ce": 0.9}, {"step": 3, "moa/validation/ce": 0.7}]
    found = best_epoch(rows)
    assert found is not None and found["step"] == 3 and best_epoch(rows[:1]) is None


# --- faults on purpose ----------------------------------------------------------------------------------------------


def test_double_softmax_shows_in_the_loss():
    sound, legacy = (tiny(goal_source="type", epochs=1, legacy_double_softmax=on) for on in (False, True))
    dataset = load_goal_dataset(sound)
    losses = [make_trainer(config, dataset).iterate()["loss/policy"] for config in (sound, legacy)]
    assert losses[1] > 1.5, "hardly below ln 7 = 1.946, and never below 1.165"


def test_rows_after_exit_show_in_the_data():
    config = tiny(goal_source="type", legacy_post_exit_rows=True)
    dataset = load_goal_dataset(config)
    splits = make_splits(config, dataset)
    clean = make_splits(replace(config, legacy_post_exit_rows=False), dataset)
    stays = [(s.train.action == 4).float().mean().item() for s in (splits, clean)]
    assert splits.train.rows > 1.3 * clean.train.rows and stays[0] > stays[1] + 0.1
    assert splits.validation.rows == clean.validation.rows, "the judgement stays on true rows"


@pytest.mark.parametrize("legacy", [False, True])
def test_one_batch_is_learnt_by_heart_unless_the_softmax_is_doubled(legacy: bool):
    config = tiny(goal_source="type", legacy_double_softmax=legacy)
    dataset = load_goal_dataset(config)
    splits = make_splits(config, dataset)
    report = overfit_one_batch(config, model_spec(config, dataset), splits.train, most_steps=60 if legacy else 300)
    assert report.passed == (not legacy)
    assert (report.loss > 1.16) == legacy, "a doubled softmax cannot get below 1.165"


def test_label_noise_is_the_entropy_among_equal_rows():
    planes = torch.tensor([0, 0, 0, 0, 1, 1]).view(6, 1, 1, 1)
    action = torch.tensor([1, 1, 2, 2, 3, 3])
    assert label_noise(planes, None, action) == pytest.approx(4 / 6 * torch.tensor(2.0).log().item())
    goal = torch.tensor([[1.0, 0], [1, 0], [0, 1], [0, 1], [1, 0], [1, 0]])
    assert label_noise(planes, goal, action) == 0
