"""For tests of learning: samples of the tiny world, and settings that learn in no time."""

from __future__ import annotations

from functools import cache

import torch

from marlab.market.learn.settings import TrainConfig
from marlab.market.samples.dataset import Samples, concatenate
from marlab.market.samples.extract import extract, with_goals
from marlab.market.samples.options import SampleOptions
from tests.market.sample_tools import tracked_logs

CPU = torch.device("cpu")
SMALL = TrainConfig(
    l2_epochs=4, l3_epochs=4, awr_epochs=4, l4_epochs=4, l2_batch_size=16, l3_batch_size=64, l4_batch_size=16,
    l3_width=16, l3_layers=1, device="cpu", l3_lr=1e-3,
)  # fmt: skip


@cache
def labelled_samples() -> Samples:
    """All decisions of the tiny world, each with the day's label as its goal."""
    made = concatenate([extract(log, SampleOptions()) for log in tracked_logs()])
    return with_goals(made, made.macro["label"])
