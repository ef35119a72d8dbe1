"""Comparison with the rule: nothing is gained by being the rule, and differences are told level by level."""

from __future__ import annotations

import pytest
import torch

from marlab.market.online.steer import HELD_OUT, Outcome, compared, fare
from tests.market.online_cases import CPU, ground


def test_an_untrained_learner_gains_nothing_and_a_weak_one_plays_otherwise() -> None:
    trainer, _ = ground()
    rule = fare(trainer.config, trainer.pool, None, CPU)
    mine = fare(trainer.config, trainer.pool, trainer.net, CPU)
    assert torch.equal(mine.score, rule.score)
    told = compared(mine, rule)
    assert told["steer/gain"] == 0 and told["steer/left"] == told["steer/rule_left"]
    other = fare(trainer.config, trainer.pool, None, CPU, which=HELD_OUT)  # the worlds of the last word are others
    assert (
        not torch.equal(other.score, rule.score)
        and trainer.last_word()[0]["steer/rule_score"] == other.score.double().mean()
    )


def test_c_and_arrays_steer_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer, _ = ground()
    quick = fare(trainer.config, trainer.pool, trainer.net, CPU)
    monkeypatch.setattr("marlab.market.vector.rule_w.native", lambda market, dtype: None)
    assert torch.equal(quick.score, fare(trainer.config, trainer.pool, trainer.net, CPU).score)


def test_gains_are_means_of_differences() -> None:
    first, zero = torch.tensor([True, True, False]), torch.zeros(3)
    rule = Outcome(torch.tensor([1.0, 1.0, 1.0]), first, zero, zero, first, zero)
    mine = Outcome(torch.tensor([1.1, 1.3, 0.8]), first, zero + 1, zero, ~first, zero)
    told = compared(mine, rule)
    assert abs(told["steer/gain"] - 0.2 / 3) < 1e-6
    assert abs(told["steer/gain_first"] - 0.2) < 1e-6
    assert "steer/gain_middle" not in told  # one seat has no interval
    assert told["steer/short"] == 1 and told["steer/rule_short"] == 0
