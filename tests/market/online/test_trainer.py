"""The trainer: ratios are 1 before the first step, resumption is exact, a generation learns."""

from __future__ import annotations

import copy

import pytest
import torch

from marlab.market.networks.around import Floats
from marlab.market.online.trainer import OnlineTrainer
from tests.market.online_cases import CPU, ground, tiny


def weights(trainer: OnlineTrainer) -> list[torch.Tensor]:
    return list(trainer.net.state_dict().values())


def test_before_the_first_step_every_ratio_is_one() -> None:
    trainer, there = ground(algo="mappo")
    before, after = there.play(1), there.play(1)
    data, told = trainer.rows(before, after, there.others())
    logp, entropy, _ = trainer.ppo.chances(data)
    assert (logp - data["logp"]).abs().max() < 1e-5
    assert (entropy > 0).any() and told["reward/signed"] > 0
    assert 0 < len(data["obs"]) == len(before[0].step)  # the last day is only looked at
    assert data["critic"].shape[1] > data["obs"].shape[1]


def test_stage_a_learns_the_order_and_leaves_every_other_layer_as_it_was() -> None:
    trainer = OnlineTrainer(tiny(algo="ppo", generations=1), CPU)
    before = trainer.net.plain()
    assert trainer.iterate()["ppo/gradient_steps"] > 0
    after = trainer.net.plain()
    assert _bits(before.layers) == _bits(after.layers) and _bits(before.order) != _bits(after.order)
    assert before.bonus == after.bonus


def _bits(layers: tuple[tuple[Floats, Floats], ...]) -> list[bytes]:
    return [part.tobytes() for layer in layers for part in layer]


@pytest.mark.long
def test_going_on_from_a_saved_state_is_exact() -> None:
    one = OnlineTrainer(tiny(algo="ippo", past_selves=1), CPU)
    one.iterate()
    saved = copy.deepcopy(one.state_dict())
    one.iterate()
    two = OnlineTrainer(tiny(algo="ippo", past_selves=1), CPU)
    before = weights(two)
    two.load_state_dict(saved)
    two.iterate()
    assert two.step == 2
    assert all(torch.equal(a, b) for a, b in zip(weights(one), weights(two)))
    assert not all(torch.equal(a, b) for a, b in zip(before, weights(OnlineTrainer(tiny(start="weak"), CPU))))


def test_a_leash_pulls_back_to_the_rule() -> None:
    trainer, there = ground(leash=0.5)
    data, _ = trainer.rows(there.play(1), there.play(1), there.others())
    assert trainer.ppo.chances(data)[2].abs().max() < 1e-6  # type: ignore[union-attr]  # it has not moved yet
    with torch.no_grad():
        trainer.net.policy[-1].bias[1] += 1.0  # type: ignore[union-attr]
    assert trainer.ppo.chances(data)[2].max() > 0.01  # type: ignore[union-attr]
