"""One batch by heart, and the label noise below which no loss can fall."""

import pytest
import torch

from marlab.hunt.others.overfit import label_noise, overfit_one_batch
from marlab.hunt.others.pretrain import load_goal_dataset, make_splits, model_spec
from tests.hunt.others_cases import tiny


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
