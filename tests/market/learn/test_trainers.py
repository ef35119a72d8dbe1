"""Offline learning on a tiny real world: resumption, files, over-fitting, refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from marlab.lab.errors import UserError
from marlab.lab.runs.checkpoint import load_checkpoint
from marlab.lab.runs.run import RunOptions
from marlab.lab.runs.testing import assert_resume_equal, assert_same
from marlab.market.learn.advantage import day_advantages, returns
from marlab.market.learn.evaluate import (
    evaluate_actions,
    evaluate_goals,
    evaluate_weights,
    trivial_actions,
    trivial_goals,
)
from marlab.market.learn.phases import MarketTrainConfig, train
from marlab.market.learn.settings import Stage, TrainSettings
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
from marlab.market.logs.worldlog import REJECT, read_world
from marlab.market.networks.losses import action_loss
from marlab.market.networks.manager import HorizonManagerPPO
from marlab.market.networks.weights import save_network
from marlab.market.rules.goals import GAP, SPREAD
from marlab.market.samples.dataset import Samples, concatenate, write_dataset
from marlab.market.samples.extract import SampleOptions, extract, with_goals

TINY = Path(__file__).parents[2] / "golden" / "market" / "tiny_world.parquet"
CPU = torch.device("cpu")
SMALL = TrainSettings(
    l2_epochs=4, l3_epochs=4, awr_epochs=4, l4_epochs=4, l2_batch_size=16, l3_batch_size=64, l4_batch_size=16,
    l3_width=16, l3_layers=1, device="cpu", l3_lr=1e-3,
)  # fmt: skip


@pytest.fixture(scope="module")
def samples() -> Samples:
    made = concatenate([extract(log, SampleOptions()) for log in read_world(TINY).tracked()])
    return with_goals(made, made.macro["label"])


def phase_trainer(phase: str, samples: Samples, settings: TrainSettings = SMALL) -> PhaseTrainer:
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


def test_stages_give_each_epoch_its_rate() -> None:
    settings = TrainSettings(l2_stages="40:3e-4,10:1e-4,10:5e-5")
    assert settings.stages("l2")[1] == Stage(10, 1e-4) and settings.epochs("l2") == 60
    assert [settings.lr_at("l2", e) for e in (0, 39, 40, 49, 50, 59)] == [3e-4, 3e-4, 1e-4, 1e-4, 5e-5, 5e-5]
    for bad in ("40", "a:b", "3:-1", "-2:1e-3"):
        with pytest.raises(UserError):
            TrainSettings(l2_stages=bad)


def test_l2_learns_64_days_by_heart(samples: Samples) -> None:
    settings = TrainSettings(
        l2_epochs=1000, l2_batch_size=64, l2_lr=3e-3, weight_decay=0.0, grad_clip=1e9, device="cpu"
    )
    days = {name: values[:64] for name, values in samples.macro.items()}
    some = Samples(samples.sizes, samples.logs, {**samples.tables, "macro": days})
    trainer = DayGoalTrainer(new_manager(settings, samples.sizes), DayTable(some, CPU), None, settings, CPU)
    first = trainer.iterate()["l2_bc/train/loss"]
    assert any(trainer.iterate()["l2_bc/train/loss"] < 0.01 * first for _ in range(settings.l2_epochs - 1))


def test_l3_learns_256_decisions_by_heart(samples: Samples) -> None:
    settings = TrainSettings(
        l3_epochs=300, l3_batch_size=256, l3_lr=3e-3, weight_decay=0.0, dropout=0.0, l3_width=64, l3_layers=2,
        grad_clip=5.0, device="cpu",
    )  # fmt: skip
    rows = _distinct(samples, 256)
    table = DecisionTable(samples, CPU, only=rows)
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


def test_leaky_histories_hold_the_answer_and_causal_ones_do_not(samples: Samples) -> None:
    rows = np.flatnonzero(samples.micro["op"] == REJECT)
    index = torch.from_numpy(rows)
    leaky = DecisionTable(samples, CPU, leaky=True).batch(index)
    offer = leaky.inputs.baseline[:, :2] + leaky.labels.residual
    torch.testing.assert_close(leaky.inputs.history[:, -1, :2], offer, rtol=1e-4, atol=1e-3)
    assert (leaky.inputs.history[:, -1, 3] == 1).all()
    causal = DecisionTable(samples, CPU).batch(index)
    assert (causal.inputs.history[:, -1, 3] == 0).all()  # the last row, if any, is the partner's


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


def test_returns_by_hand() -> None:
    found = returns(np.array([1.0, 2.0, 4.0, 8.0, np.nan, 1.0]), np.array([0, 0, 0, 1, 2, 2]), 0.5)
    assert found[:4].tolist() == [3.0, 4.0, 4.0, 8.0] and np.isnan(found[4]) and found[5] == 1.0


def test_advantages_are_what_the_morning_did_not_tell(samples: Samples) -> None:
    advantage = day_advantages(samples, 0.98, seed=0)
    assert advantage.shape == (samples.rows("macro"),) and np.isfinite(advantage).all()
    np.testing.assert_array_equal(advantage, day_advantages(samples, 0.98, seed=0))
    unknown = {**samples.macro, "reward": np.full(samples.rows("macro"), np.nan, np.float32)}
    with pytest.raises(UserError, match="reward"):
        day_advantages(Samples(samples.sizes, samples.logs, {**samples.tables, "macro": unknown}), 0.98, 0)


# --- evaluation -------------------------------------------------------------------------------------------------------


def test_trivial_predictors(samples: Samples) -> None:
    goals = trivial_goals(samples)
    day = int(np.flatnonzero(samples.macro["needs"][:, 0] > 0)[0])
    assert goals["gap only"][day, 0] == pytest.approx(GAP * SPREAD[0] * samples.macro["needs"][day, 0], rel=1e-5)
    assert (goals["zero and spot"][:, ::2] == 0).all()
    guesses = trivial_actions(samples, majority_op=2)
    assert (guesses["majority"]["op"] == 2).all() and (guesses["baseline"]["residual"] == 0).all()
    # "copy" against a plain walk through the histories
    found, there = samples.histories(np.arange(samples.rows("micro")))
    for i in range(0, samples.rows("micro"), 7):
        own = [row for row, present in zip(found[i], there[i]) if present and row[3] > 0]
        offer = guesses["copy"]["residual"][i] + samples.micro["baseline"][i, :2]
        expected = own[-1][:2] if own else samples.micro["baseline"][i, :2]
        np.testing.assert_allclose(offer, expected, atol=1e-4)


def test_reports_of_all_layers_are_complete(samples: Samples) -> None:
    goals = evaluate_goals(new_manager(SMALL, samples.sizes), samples, CPU)
    assert goals["gap only"]["Q"]["rmse"] < goals["zero and spot"]["Q"]["rmse"] and len(goals["per_bucket"]) == 4
    untrained = new_executor(SMALL, 40)
    found = evaluate_actions(untrained, samples, CPU, majority_op=1)
    assert found["L3"]["confusion"] == found["baseline"]["confusion"]  # without learning it is the baseline
    assert found["L3"]["mae_q"] == pytest.approx(found["baseline"]["mae_q"])
    assert found["L3"]["day_acc"] == found["baseline"]["day_acc"]
    low, high = found["copy"]["mae_q_interval"]
    assert low <= found["copy"]["mae_q"] <= high
    weights = evaluate_weights(new_coordinator(SMALL, 40), samples, CPU)
    assert weights["kl"] > 0 and weights["rounds"] > 0


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    logs = [extract(log, SampleOptions()) for log in read_world(TINY).tracked()]
    write_dataset(folder, {"train": concatenate(logs), "val": logs[0], "test": logs[-1]}, {"l1": {}, "features": {}})
    return folder


def command(data: Path, **more: object) -> MarketTrainConfig:
    return MarketTrainConfig(
        data=data, phases="l2,l3,awr,l4", l2_epochs=2, l3_epochs=2, awr_epochs=1, l4_epochs=2, l3_width=16,
        l3_layers=1, device="cpu", **more,
    )  # fmt: skip


def test_all_phases_leave_their_files_and_a_stopped_run_continues(data: Path, tmp_path: Path) -> None:
    whole = train(command(data), RunOptions(output_dir=tmp_path / "whole"), quiet=True)
    names = {path.name for path in (whole / "checkpoints").iterdir()}
    for stem, epochs in (("l2_bc", 2), ("l3_bc", 2), ("l3_awr", 1), ("l4_distill", 2)):
        assert {f"{stem}.pt", f"{stem}_best.pt", f"{stem}_epoch{epochs}.pt", f"{stem}_epoch{epochs}.ckpt.pt"} <= names
    figures = {path.name for path in (whole / "figures").iterdir()}
    assert {"l2_bc_loss.png", "l2_bc_buckets.png", "l3_bc_operators.png", "l3_bc_residuals.png",
            "l4_distill_weights.png"} <= figures  # fmt: skip
    assert (whole / "eval" / "l3_bc_test.json").exists()

    parts = tmp_path / "parts"
    stopped = train(
        command(data), RunOptions(output_dir=parts, time_limit=1e-6), quiet=True
    )  # one epoch, then it leaves
    assert not (stopped / "checkpoints" / "l4_distill.pt").exists()
    train(command(data), RunOptions(output_dir=parts, resume=True), quiet=True)
    for name in ("l2_bc.pt", "l3_bc.pt", "l3_awr.pt", "l4_distill.pt"):
        a, b = (load_checkpoint(folder / "checkpoints" / name).state["model"] for folder in (whole, parts))
        assert_same(a, b, name)


def test_bad_input_is_refused_in_one_sentence(data: Path, tmp_path: Path, samples: Samples) -> None:
    def refused(match: str, config: MarketTrainConfig) -> None:
        with pytest.raises(UserError, match=match):
            train(config, RunOptions(output_dir=tmp_path / "refused"), quiet=True)

    refused("not a finished set of samples", replace(command(data), data=tmp_path / "nothing"))
    refused("zeros", replace(command(data), l3_goals="none"))
    write_dataset(tmp_path / "val_only", {"val": samples}, {})
    refused("no split 'train'", replace(command(data), data=tmp_path / "val_only"))
    broken = {**samples.macro, "x_static": samples.macro["x_static"].copy()}
    broken["x_static"][3, 2] = np.nan
    write_dataset(
        tmp_path / "nan", {"train": Samples(samples.sizes, samples.logs, {**samples.tables, "macro": broken})}, {}
    )
    (tmp_path / "refused").rename(tmp_path / "first")
    refused("macro.x_static, row 3", replace(command(data), data=tmp_path / "nan"))
    if not torch.cuda.is_available():
        refused("no usable GPU", replace(command(data), device="cuda"))
    for bad, match in (({"phases": "l9"}, "l9"), ({"phases": ""}, "no phase"), ({"phases": "l3"}, "l2-model-path")):
        with pytest.raises(UserError, match=match):
            replace(command(data), **bad)
    save_network(tmp_path / "l2_bc.pt", HorizonManagerPPO(horizon=20))
    (tmp_path / "refused").rename(tmp_path / "second")
    refused("horizon 20", replace(command(data), phases="l3", l2_model_path=tmp_path / "l2_bc.pt"))
