"""One phase at a time on a tiny real world: resumption, over-fitting, equal gradients."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from marlab.lab.runs.testing import assert_resume_equal
from marlab.market.learn.settings import TrainConfig
from marlab.market.learn.tables import DayTable, DecisionTable, RoundTable
from marlab.market.learn.trainers import (
    ActionTrainer,
    AdvantageTrainer,
    DayGoalTrainer,
    PhaseTrainer,
    WeightTrainer,
    new_coordinator,
    new_executor,
    new_manager,
)
from marlab.market.logs.worldlog import REJECT
from marlab.market.networks.losses import action_loss
from marlab.market.samples.dataset import Samples
from tests.market.learn_cases import CPU, SMALL, labelled_samples


@pytest.fixture(scope="module")
def samples() -> Samples:
    return labelled_samples()


def phase_trainer(phase: str, samples: Samples, settings: TrainConfig = SMALL) -> PhaseTrainer:
    if phase == "l2":
        return DayGoalTrainer(
            new_manager(settings, samples.sizes), DayTable(samples, CPU), DayTable(samples, CPU), settings, CPU
        )
    if phase == "l4":
        return WeightTrainer(new_coordinator(settings, 40), RoundTable(samples, CPU), None, settings, CPU)
    table = DecisionTable(samples, CPU, advantage=np.linspace(-1, 1, samples.rows("micro")).astype(np.float32))
    kind = ActionTrainer if phase == "l3" else AdvantageTrainer
    return kind(new_executor(settings, 40), table, table, settings, CPU)


@pytest.mark.parametrize("phase", ["l2", "l3", "awr", "l4"])
def test_a_resumed_phase_equals_one_that_never_stopped(phase: str, samples: Samples, tmp_path: Path) -> None:
    assert_resume_equal(lambda: phase_trainer(phase, samples), first=2, second=2, folder=tmp_path)


@pytest.mark.parametrize("phase", ["l2", "l3", "awr", "l4"])
def test_settings_decide_the_rate_after_a_resume_and_a_finished_phase_does_nothing(
    phase: str, samples: Samples
) -> None:
    first = phase_trainer(phase, samples)
    first.iterate()
    saved = first.state_dict()
    again = phase_trainer(phase, samples, replace(SMALL, **{f"{phase}_lr": 7e-3}))
    again.load_state_dict(saved)
    again.iterate()
    assert all(group["lr"] == 7e-3 for group in again.optimiser.param_groups)
    done = phase_trainer(phase, samples, replace(SMALL, **{f"{phase}_epochs": 1}))
    done.load_state_dict(saved)
    assert done.step >= done.total


@pytest.mark.long
def test_l2_learns_64_days_by_heart(samples: Samples) -> None:
    settings = TrainConfig(
        l2_epochs=1000, l2_batch_size=64, l2_lr=3e-3, weight_decay=0.0, max_grad_norm=1e9, device="cpu"
    )
    days = {name: values[:64] for name, values in samples.macro.items()}
    some = Samples(samples.sizes, samples.logs, {**samples.tables, "macro": days})
    trainer = DayGoalTrainer(new_manager(settings, samples.sizes), DayTable(some, CPU), None, settings, CPU)
    first = trainer.iterate()["l2_bc/train/loss"]
    assert any(trainer.iterate()["l2_bc/train/loss"] < 0.01 * first for _ in range(settings.l2_epochs - 1))


@pytest.mark.long
def test_l3_learns_256_decisions_by_heart(samples: Samples) -> None:
    settings = TrainConfig(
        l3_epochs=300, l3_batch_size=256, l3_lr=3e-3, weight_decay=0.0, dropout=0.0, l3_width=64, l3_layers=2,
        max_grad_norm=5.0, device="cpu",
    )  # fmt: skip
    rows = _distinct(samples, 256)
    micro = {name: values[rows] for name, values in samples.micro.items()}
    table = DecisionTable(replace(samples, tables={**samples.tables, "micro": micro}), CPU)
    trainer = ActionTrainer(new_executor(settings, 40), table, None, settings, CPU)
    accuracy = error = float("nan")
    for _ in range(settings.l3_epochs):  # one step each
        accuracy = trainer.iterate()["l3_bc/train/op_acc"]
        if accuracy > 0.99 and (error := _quantity_error(trainer.model, table)) < 0.5:
            break
    assert accuracy > 0.99 and error < 0.5


def _distinct(samples: Samples, count: int) -> np.ndarray:
    """Decisions that can be told apart by what L3 sees; equal situations with different answers cannot be learnt."""
    table = DecisionTable(samples, CPU)
    batch = table.batch(torch.arange(table.rows))
    seen = torch.cat(
        [part.flatten(1).float() if part.dim() > 1 else part.unsqueeze(1).float() for part in batch.inputs], 1
    )
    _, first = np.unique(seen.numpy().round(3), axis=0, return_index=True)
    valid = first[(samples.micro["op"][first] != REJECT) | samples.micro["time_valid"][first]]
    return np.sort(valid)[:count]


@torch.inference_mode()
def _quantity_error(model: torch.nn.Module, table: DecisionTable) -> float:
    batch = table.batch(torch.arange(table.rows))
    offered = (batch.labels.op == REJECT) & batch.labels.day_valid
    return float((model.eval()(batch.inputs).residual - batch.labels.residual).abs()[offered, 0].mean())


def test_parting_decisions_by_length_changes_no_gradient(samples: Samples) -> None:
    settings = replace(SMALL, dropout=0.0)
    table = DecisionTable(samples, CPU)
    trainer = ActionTrainer(new_executor(settings, 40), table, None, settings, CPU)
    index = torch.randperm(table.rows, generator=torch.Generator().manual_seed(0))[:200]
    assert torch.equal(torch.cat([rows for _, rows in table.by_length(index)]).sort().values, index.sort().values)
    loss, _ = trainer.losses(table, index)
    loss.backward()
    parted = [p.grad.clone() for p in trainer.model.parameters() if p.grad is not None]
    trainer.model.zero_grad()
    whole = table.batch(index)
    again = action_loss(trainer.model(whole.inputs), whole.labels)
    again.total.backward()
    torch.testing.assert_close(loss.detach(), again.total.detach())
    for a, b in zip(parted, (p.grad for p in trainer.model.parameters() if p.grad is not None)):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)


def test_the_best_epoch_of_awr_is_chosen_by_weighted_loss(samples: Samples) -> None:
    """On validation a decision counts as much as its advantage says: mean 1 over the table, more for better days."""
    advantage = np.linspace(-2, 2, samples.rows("micro")).astype(np.float32)
    table = DecisionTable(samples, CPU, advantage=advantage)
    trainer = AdvantageTrainer(new_executor(SMALL, 40), table, table, SMALL, CPU)
    trainer.model.eval()
    weights = trainer.weights(table, torch.from_numpy(advantage))
    assert weights is not None and float(weights.mean()) == pytest.approx(1, abs=1e-5)
    assert (weights.diff() >= 0).all() and weights[-1] > 5 * weights[0]
    parts = torch.cat([trainer.weights(table, torch.from_numpy(part)) for part in np.split(advantage, [7, 300])])
    torch.testing.assert_close(parts, weights)  # whatever the batches
    found = trainer.measure(table)
    plain = ActionTrainer(trainer.model, table, None, SMALL, CPU).measure(table)
    assert found["loss_plain"] == pytest.approx(plain["loss"], rel=1e-5) and found["loss"] != found["loss_plain"]
    values = trainer.iterate()
    assert trainer.best == (1, values["l3_awr/val/loss"])


def test_decisions_without_a_return_are_no_rows(samples: Samples) -> None:
    advantage = np.zeros(samples.rows("micro"), np.float32)
    advantage[5:50] = np.nan
    table = DecisionTable(samples, CPU, advantage=advantage)
    assert table.rows == len(advantage) - 45 and len(table.advantage) == table.rows
    whole = DecisionTable(samples, CPU)
    index = torch.arange(table.rows)
    expected = torch.cat([torch.arange(5), torch.arange(50, len(advantage))])
    assert torch.equal(table.batch(index).labels.op, whole.batch(expected).labels.op)
    assert sorted(i for _, rows in table.by_length(index) for i in rows.tolist()) == index.tolist()


def test_l2_positive_keeps_quantities_above_zero_and_can_be_turned_off(samples: Samples) -> None:
    table = DayTable(samples, CPU)
    days = table.batch(torch.arange(table.rows))
    for positive in (True, False):
        model = new_manager(replace(SMALL, l2_positive=positive), samples.sizes)
        torch.nn.init.constant_(model.mean.bias, -9.0)
        quantities = model(days.x_static, days.x_temporal, days.x_role)[0][:, ::2]
        assert bool((quantities >= 0).all()) is positive
