"""What every objective trains, and that a stopped training goes on as if never stopped."""

from pathlib import Path

import pytest
import torch

from marlab.hunt.pretraining.run import load_goal_dataset, make_trainer
from marlab.lab.runs.testing import assert_halfway_equal, assert_resume_equal
from tests.hunt.others_cases import tiny

SOURCES = ("history", "state", "type", "outcome", "none")


@pytest.mark.parametrize("source", SOURCES)
def test_resume_equals_never_stopped(source: str, tmp_path: Path):
    config = tiny(goal_source=source, epochs=3, prototype_epochs=1)
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


@pytest.mark.parametrize(("source", "asks"), [("history", 4), ("type", 1)])
def test_an_epoch_goes_on_in_its_middle(source: str, asks: int, tmp_path: Path):
    config = tiny(goal_source=source, epochs=3)
    dataset = load_goal_dataset(config)
    assert_halfway_equal(lambda: make_trainer(config, dataset), asks, 2, tmp_path, ignore=("time/",))
