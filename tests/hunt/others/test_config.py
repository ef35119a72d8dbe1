"""Schedules that follow from the objective."""

from marlab.hunt.others.config import PretrainGoalsConfig


def test_kl_schedule_defaults_follow_the_objective():
    assert PretrainGoalsConfig(vae_loss="moa").kl_schedule == (5e-5, 2e4)
    assert PretrainGoalsConfig(vae_loss="recon").kl_schedule == (1e-3, 1e4)
    assert PretrainGoalsConfig(kl_max=0.1, kl_tau=5.0).kl_schedule == (0.1, 5.0)
