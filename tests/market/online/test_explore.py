"""Exploring days: greedy play with a few choices drawn at random, and what each of them brought."""

from __future__ import annotations

import torch

from marlab.market.online.explore import Explorer, live
from marlab.market.online.ground_vector import Ground
from marlab.market.online.trainer import OnlineTrainer
from tests.market.online_cases import CPU, tiny


def test_explorers_are_greedy_but_for_a_few_choices() -> None:
    config = tiny(algo="improve", worlds=8)
    trainer = OnlineTrainer(config, CPU)
    found = live(Ground(config, trainer.net, trainer.pool, 0, CPU, plays=Explorer), 2)
    changed = (found.choices > 0).float().mean(0)
    assert 0 < float(changed.max()) < 0.3
    assert len(found.earned) == 2 and found.morning.shape[:2] == found.earned.shape
    # what was earned before a choice and what came after it is the day
    assert torch.allclose(found.rest + found.before, found.earned[found.day, found.seat].float(), atol=1e-4)
