"""What models answer: the same however rows are asked for, and labels that keep what was captured."""

from __future__ import annotations

import pytest
import torch

from marlab.hunt.others.models import GoalModels, ModelSpec
from marlab.hunt.players.rollout import NONE
from marlab.hunt.pretraining import answers
from marlab.hunt.pretraining.answers import codebook_of, predict, read_codes, soft_labels, vae_scores
from marlab.hunt.pretraining.data import GoalData, goal_data
from tests.hunt.helpers import seeded
from tests.hunt.offline import offline_data


def asked(source: str) -> tuple[GoalModels, GoalData]:
    """Models that learnt nothing yet, and rows to ask them about."""
    data = offline_data()
    rows = goal_data(data.game, data.part("validation"), source, 10, "cpu")
    return GoalModels(ModelSpec(data.game, source, 16, 32, False), seeded(0)), rows


@pytest.mark.parametrize(("source", "stage"), [("history", "history"), ("state", "vae"), ("type", "labels")])
def test_rows_are_answered_alike_in_chunks_of_any_size(source: str, stage, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    models, data = asked(source)
    whole = predict(models, data, stage)
    monkeypatch.setattr(answers, "CHUNK", 100)
    parts = predict(models, data, stage)
    torch.testing.assert_close(whole.logits, parts.logits)
    assert whole.logits.shape == (data.rows, 7) and (whole.logits[~data.mask] < -1e6).all()
    assert (whole.code is None) == (source == "type")


def test_codes_are_those_that_predictions_were_made_with() -> None:
    models, data = asked("history")
    predicted, codes = predict(models, data, "history"), read_codes(models, data)
    assert predicted.code is not None
    torch.testing.assert_close(codes[:, 0], predicted.code)
    book = codebook_of(models, data, codes[:, 0], seed=0)
    assert book.prototypes.shape == (8, 16) and book.usage.sum().item() == pytest.approx(1.0)
    torch.testing.assert_close(book.goal.sum(0), torch.ones(8))


def test_captures_are_labels_whatever_the_models_think() -> None:
    models, data = asked("outcome")
    labels, caught = soft_labels(models, data), data.outcome != NONE
    assert torch.equal(labels[caught], data.goal[caught]) and bool((~caught).any())
    torch.testing.assert_close(labels.sum(1), torch.ones(data.rows))


def test_an_autoencoder_that_learnt_nothing_rebuilds_nothing() -> None:
    models, data = asked("state")
    scores = vae_scores(models, data)
    assert scores["recon"] > 0.3 and len(scores["kl_per_dimension"]) == 16
