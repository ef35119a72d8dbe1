"""Schedules that follow from the objective."""

from marlab.hunt.others.config import PretrainGoalsConfig


def test_kl_schedule_defaults_follow_the_objective():
    assert PretrainGoalsConfig(vae_loss="moa").kl_schedule == (5e-5, 2e4)
    assert PretrainGoalsConfig(vae_loss="recon").kl_schedule == (1e-3, 1e4)
    assert PretrainGoalsConfig(kl_max=0.1).kl_schedule == (0.1, 1e4)


def test_every_stage_of_codes_has_its_epochs() -> None:
    """A third for the autoencoder, half of the rest for prototypes; the history encoder never goes without."""
    assert PretrainGoalsConfig().stages == (4, 4, 4)
    assert PretrainGoalsConfig(epochs=20, vae_epochs=5).stages == (5, 7, 8)
    assert PretrainGoalsConfig(epochs=2).stages == (1, 1, 0)
    assert all(
        min(before, history) >= 1 for before, history, _ in (PretrainGoalsConfig(epochs=e).stages for e in range(2, 30))
    )
