import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch

from marlab.hunt.commands import pretrain_goals as command
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.others.belief_report import within_episode
from marlab.hunt.others.config import BeliefConfig, PretrainGoalsConfig
from marlab.hunt.others.models import LoadedModels, load_goal_models
from marlab.hunt.others.overfit import label_noise, overfit_one_batch
from marlab.hunt.others.pretrain import load_goal_dataset, make_splits, make_trainer, model_spec, pretrain_goals
from marlab.hunt.others.report import learned_source
from marlab.lab.errors import UserError
from marlab.lab.runs.checkpoint import CheckpointError
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.rng import Rngs
from marlab.lab.runs.run import RunOptions
from marlab.lab.runs.testing import assert_resume_equal
from tests.hunt.offline import offline_data

SOURCES = ("history", "state", "type", "outcome", "none")


def tiny(**changes) -> PretrainGoalsConfig:
    """Two epochs on 2,000 rows: seconds, and every part of the code."""
    data = offline_data(rows=2000).path
    return PretrainGoalsConfig(
        **{"data": data, "epochs": 2, "vae_epochs": 1, "belief_games": 2, "overfit_check": False, **changes}
    )


@pytest.fixture(scope="module")
def history_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "history"
    return pretrain_goals(tiny(), RunOptions(output_dir=folder), quiet=True).path


@pytest.fixture(scope="module")
def type_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "type"
    return pretrain_goals(
        tiny(goal_source="type", share_moa=False, belief_games=0), RunOptions(output_dir=folder), quiet=True
    ).path


# --- training -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES)
def test_resume_equals_never_stopped(source: str, tmp_path: Path):
    config = tiny(goal_source=source, epochs=3, share_moa=source != "type")
    dataset = load_goal_dataset(config)
    assert_resume_equal(lambda: make_trainer(config, dataset), 1, 2, tmp_path, ignore=("time/",))


@pytest.mark.parametrize("objective", ["recon", "moa", "joint"])
def test_what_each_objective_trains(objective: str):
    config = tiny(goal_source="state", vae_loss=objective, epochs=1)
    trainer = make_trainer(config, load_goal_dataset(config))
    before = {k: v.clone() for k, v in trainer.models.state_dict().items()}
    values = trainer.iterate()
    after = trainer.models.state_dict()
    moved = {k for k in after if not torch.equal(after[k], before[k])}
    assert any(k.startswith("moa") for k in moved) == (objective != "recon")
    assert any(k.startswith("vae.decoder") for k in moved) == (objective != "moa")
    assert any(k.startswith("vae.trunk") for k in moved)
    assert set(values["curve"]) >= {"step", "policy", "recon", "kl", "total", "kl_factor", "grad_norm"}
    if objective == "recon":
        assert values["loss/total"] == pytest.approx(values["loss/recon"], abs=0.05), "the KL term is still small"


def test_the_autoencoder_is_frozen_while_the_history_encoder_learns():
    config = tiny()
    trainer = make_trainer(config, load_goal_dataset(config))
    trainer.iterate()
    assert trainer.stage == "history"
    before = {k: v.clone() for k, v in trainer.models.state_dict().items()}
    trainer.iterate()
    after = trainer.models.state_dict()
    same = {k for k in after if torch.equal(after[k], before[k])}
    assert same == {k for k in after if k.startswith("vae.")}


def test_kl_schedule_defaults_follow_the_objective():
    assert PretrainGoalsConfig(vae_loss="moa").kl_schedule == (5e-5, 2e4)
    assert PretrainGoalsConfig(vae_loss="recon").kl_schedule == (1e-3, 1e4)
    assert PretrainGoalsConfig(kl_max=0.1, kl_tau=5.0).kl_schedule == (0.1, 5.0)


def test_with_the_type_given_a_small_training_already_predicts_well():
    """5 % of the data and 8 epochs; benchmarks/hunt_pretrain.py measures the full size, where the gates are higher."""
    data = offline_data()
    config = PretrainGoalsConfig(data=data.path, goal_source="type", epochs=8, batch_size=128)
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


# --- one batch by heart ---------------------------------------------------------------------------------------------


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


# --- what a run leaves behind ---------------------------------------------------------------------------------------


def test_history_run_is_complete(history_run: Path):
    text = (history_run / "eval" / "final.json").read_text()
    final = json.loads(text)
    assert "NaN" not in text and "Infinity" not in text
    assert set(final["splits"]) == {"train", "validation", "test"}
    validation = final["splits"]["validation"]
    assert set(validation["ceilings"]) == {"known", "bayes", "mixture"}
    assert validation["moa"]["floor"] == pytest.approx(validation["ceilings"]["known"]["cross_entropy"], abs=0.1)
    assert {probe["t"] for probe in final["probes"]} >= {0, 1} and len(final["vae"]["kl_per_dimension"]) == 16
    assert all(0 <= probe[k]["balanced"] <= 1 for probe in final["probes"] for k in ("code", "state_code", "state"))
    assert set(final["belief"]) == {"exact", "learned"} and final["data"]["post_exit_share"] == 0
    codes = pq.read_table(history_run / "eval" / "codes.parquet")
    assert codes.num_rows == validation["moa"]["rows"] and len(codes["code"][0]) == 16
    for epoch in (0, 1):
        assert {p.suffix for p in (history_run / "eval").glob(f"moa_eval_epoch{epoch}.*")} == {".csv", ".json", ".npz"}
    figures = {p.name for p in (history_run / "figures").iterdir()}
    assert figures == {"losses.png", "epochs.png", "predictions.png", "codes.png", "belief.png"}
    rows = read_metrics(history_run / "metrics.jsonl")
    assert [row["stage"] for row in rows] == ["vae", "history"]
    assert "[MOA] epoch 1: top1=" in (history_run / "log.txt").read_text()
    record = json.loads((history_run / "run.json").read_text())
    assert record["status"] == "finished" and 0 < record["results"]["validation_top1"] < 1
    assert record["results"]["best_epoch"] == 1, "only epochs of the final stage can be the best"


def test_models_come_back_as_they_were(history_run: Path, type_run: Path):
    loaded = load_goal_models(history_run, game_config("msh_4x4"), goal_width=16)
    assert loaded.spec.goal_source == "history" and loaded.goals().shape == (8, 16)
    assert loaded.codebook is not None and loaded.codebook.outcome.shape == (3, 8)
    assert not any(p.requires_grad for p in loaded.models.parameters())
    typed = load_goal_models(type_run, goal_width=2)
    assert typed.codebook is None and typed.goals().tolist() == [[1, 0], [0, 1]]
    assert typed.models.moa.nets.copies == 3 and not typed.spec.share_moa


@pytest.mark.parametrize(
    "asked, sentence",
    [
        ({"game": game_config("msh_8x8_b5")}, r"another game \(msh_4x4\): their height is 4, expected 8"),
        ({"game": game_config("msh_2p_4x4")}, "their players is 4, expected 2"),
        ({"goal_width": 16}, "take goals of width 2 .* expected width 16"),
    ],
)
def test_mismatched_models_are_refused_in_one_sentence(type_run: Path, asked: dict, sentence: str):
    with pytest.raises(CheckpointError, match=sentence):
        load_goal_models(type_run, **asked)


def test_missing_models_and_data_are_told(tmp_path: Path):
    with pytest.raises(CheckpointError, match=r"holds no models\.pt"):
        load_goal_models(tmp_path)
    with pytest.raises(UserError, match="Say which data"):
        pretrain_goals(PretrainGoalsConfig())
    with pytest.raises(UserError, match="There is no data set"):
        command([str(tmp_path)])
    with pytest.raises(UserError, match="vae_epochs is 2 of 2"):
        PretrainGoalsConfig(epochs=2)
    with pytest.raises(UserError, match="batch_size is 1"):
        PretrainGoalsConfig(batch_size=1)
    with pytest.raises(UserError, match="learning_rate is 0"):
        PretrainGoalsConfig(learning_rate=0.0)


def test_command_line(tmp_path: Path):
    config = tiny()
    words = [str(config.data), "--goal-source", "none", "--epochs", "1", "--belief-games", "0", "--no-overfit-check"]
    assert command([*words, "--output-dir", str(tmp_path / "run")]) == 0
    assert load_goal_models(tmp_path / "run", goal_width=0).spec.goal_width == 0


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


def test_global_actions_change_only_what_the_history_encoder_reads():
    config = tiny(legacy_global_prev_actions=True)
    dataset = load_goal_dataset(config)
    faulty, clean = (make_splits(replace(config, legacy_global_prev_actions=on), dataset) for on in (True, False))
    assert not torch.equal(faulty.train.joint, clean.train.joint)
    assert not torch.equal(faulty.validation.joint, clean.validation.joint)
    assert torch.equal(faulty.train.planes, clean.train.planes) and torch.equal(faulty.train.action, clean.train.action)
