"""The original's habits, and a fault that is planted and goes away again."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any

import pytest
import torch

from marlab.hunt.game.config import game_config
from marlab.hunt.game.rules import STAY
from marlab.hunt.museum.training import Training, as_the_original, rows_after_exit, with_all_switches
from marlab.hunt.others.moa import action_loss
from marlab.hunt.selfplay import learn
from marlab.hunt.selfplay.play import SelfPlay
from marlab.hunt.selfplay.trainer import HopTrainer
from marlab.lab.runs.trainer import loop
from tests.hunt.hop_cases import small_training

FOUR = game_config("msh_4x4")


def test_the_planted_fault_is_gone_afterwards() -> None:
    write = SelfPlay._write
    with pytest.raises(RuntimeError), rows_after_exit():
        assert SelfPlay._write is not write
        raise RuntimeError
    assert SelfPlay._write is write


def test_players_who_left_go_on_in_a_spoilt_replay() -> None:
    """Clean: as many rows as steps of living players. Spoilt: everybody has a row at every step."""

    def rows(fault: bool) -> tuple[HopTrainer, torch.Tensor]:
        with rows_after_exit() if fault else nullcontext():
            trainer = HopTrainer(small_training(game=FOUR, num_envs=4, steps=40, total_steps=160))
            for _ in range(trainer.config.steps):
                trainer.play.step(trainer.replay, 0, 5.0)
        return trainer, trainer.replay.written

    clean, spoilt = rows(False)[1], rows(True)
    assert len(set(spoilt[1].tolist())) == 1  # the same number for all seats
    assert len(set(clean.tolist())) > 1
    store = spoilt[0].replay.store
    gone = store.rows[0, : int(spoilt[1][0])]
    layout = FOUR.height * FOUR.width * FOUR.channels
    absent = gone[:, -layout:].view(-1, FOUR.cells, FOUR.channels)[..., 0].sum(1) == 0  # own plane is empty
    assert bool(absent.any())
    assert bool((store.action[0, : len(gone)][absent] == STAY).all()) and bool(gone[absent][:, : FOUR.actions].all())


def test_the_original_habits_are_all_switched_on() -> None:
    config = as_the_original(small_training())
    assert config.plan.legacy_beta == 2.0 and config.plan.search.legacy_q and config.learn.follow == 0.0
    assert config.guard.drop == 0.0 and config.learn.replay <= config.num_envs * config.steps * 5


def test_a_training_knows_its_peak_and_end() -> None:
    rise = Training([*([0.5] * 10), *([2.0] * 10), *([1.0] * 10)], [1.0] * 30, [1.0] * 30)
    assert rise.peak == pytest.approx(2.0) and rise.end == pytest.approx(1.0)
    assert math.isfinite(Training([math.nan, 1.0, 1.0, 1.0], [1.0] * 4, [1.0] * 4).peak)


def test_the_switch_of_the_online_loss_reaches_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """All faults together feed probabilities to the loss of the models of others while they play."""
    given: list[bool] = []

    def spy(*arguments: Any, legacy_double_softmax: bool, **more: Any) -> Any:
        given.append(legacy_double_softmax)
        return action_loss(*arguments, legacy_double_softmax=legacy_double_softmax, **more)

    monkeypatch.setattr(learn, "action_loss", spy)
    for config in (small_training(), with_all_switches(small_training())):
        loop(HopTrainer(config), log=lambda values: None)
    assert given and given[0] is False and given[-1] is True
