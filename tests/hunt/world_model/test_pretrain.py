"""Pretraining the world model: files, resumption, early stopping, its options, and refusals."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from marlab.hunt.commands import pretrain_world as command
from marlab.hunt.data.collect import collect
from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.data.dataset import Dataset, load_dataset
from marlab.hunt.game.config import game_config
from marlab.hunt.world_model.config import PretrainWorldConfig
from marlab.hunt.world_model.data import transitions
from marlab.hunt.world_model.model import load_world_model
from marlab.hunt.world_model.pretrain import SAMPLES, WorldTrainer, pretrain_world
from marlab.lab.errors import UserError
from marlab.lab.runs.checkpoint import load_checkpoint
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.runs.testing import assert_halfway_equal, assert_resume_equal
from marlab.lab.verdict import texts

TINY = game_config("msh_tiny")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tiny") / "data"
    return collect(HuntCollectConfig(game=TINY, rows=1500), RunOptions(output_dir=out), quiet=True).path


@pytest.fixture(scope="module")
def data(folder: Path) -> Dataset:
    return load_dataset(folder)


def small(folder: Path, **changes: object) -> PretrainWorldConfig:
    base = PretrainWorldConfig(data=folder, rows=0, epochs=3, batch_size=64)
    return replace(base, **changes)  # type: ignore[arg-type]


def test_rows_are_whole_episodes_and_splits_stay_apart(data: Dataset) -> None:
    parts = [transitions(data, split, 500) for split in ("train", "validation", "test")]
    whole = transitions(data, "all", 500)
    assert sum(p.size for p in parts) == whole.size
    assert 500 <= whole.size < 500 + TINY.final_time * TINY.players
    for part in [*parts, whole]:
        on = part.follow >= 0
        assert bool((part.follow < part.size).all())
        assert torch.equal(part.next_obs[on], part.obs[part.follow[on]])
        assert torch.equal(part.t[on] + 1, part.t[part.follow[on]])
        assert bool(part.done[~on, 0].all())  # a player's last row is where it is done


@pytest.mark.parametrize(
    "changes",
    [{}, {"model": "dense", "channel_weights": (2.0, 2.0, 1.0, 1.0, 1.0)}],
    ids=["structured", "dense"],
)
def test_resume_equals_never_stopped(changes: dict[str, object], folder: Path, data: Dataset, tmp_path: Path) -> None:
    assert_resume_equal(lambda: WorldTrainer(small(folder, **changes), data), 1, 2, tmp_path, ignore=("time/",))


def test_an_epoch_goes_on_in_its_middle(folder: Path, data: Dataset, tmp_path: Path) -> None:
    assert_halfway_equal(lambda: WorldTrainer(small(folder), data), 1, 2, tmp_path, ignore=("time/",))


def test_patience_ends_the_training(folder: Path, data: Dataset) -> None:
    config = small(folder, patience=2, epochs=30)
    trainer = WorldTrainer(config, data)
    trainer.best_loss = -1.0  # nothing is ever better
    while trainer.step < trainer.total:
        trainer.iterate()
    assert trainer.step == 2


def test_learning_rate_is_a_cosine(folder: Path, data: Dataset) -> None:
    trainer = WorldTrainer(small(folder, epochs=11), data)
    rates = []
    for step in (0, 5, 10):
        trainer.step = step
        rates.append(trainer._learning_rate())
    assert rates == pytest.approx([1e-3, (1e-3 + 1e-5) / 2, 1e-5])


def test_a_stopped_run_has_a_curve_and_a_verdict(folder: Path, tmp_path: Path) -> None:
    asked = iter([False] * 40)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "should_stop", lambda self: next(asked, True))
        run = pretrain_world(small(folder, epochs=30), RunOptions(output_dir=tmp_path / "run"), quiet=True)
    assert run.status == "interrupted" and (run.path / "figures" / "losses.png").exists()
    assert "of 30 epochs the loss on held-out steps is" in run.verdict[0] and "--resume" in run.verdict[1]


def test_a_run(folder: Path, tmp_path: Path) -> None:
    config = small(folder, epochs=10)
    path = pretrain_world(config, RunOptions(output_dir=tmp_path / "run"), quiet=True).path
    report = json.loads((path / "world_report.json").read_text())
    assert texts(read_run(path).verdict, str(path))[0].startswith("The world model helps: in held-out steps it puts")
    assert set(report["splits"]) == {"train", "validation", "test"}
    test = report["splits"]["test"]
    assert test["metrics"]["obs_mse"] < 0.4 * test["baselines"]["copy_last_frame"]["obs_mse"]
    assert test["metrics"]["teleport_rate"] == [0.0, 0.0]
    assert {"1", "2", "3", "5"} <= set(test["drift"])
    assert set(test["calibration"]["channels"]) == {"player 1", "player 2", "obstacles", "stags", "hares"}
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    losses = [line["wm/validation/loss"] for line in lines]
    assert losses[-1] < losses[0]
    assert report["best_epoch"] == 1 + losses.index(min(losses))
    assert len(lines[0]["wm/validation/channel_mse"]) == TINY.channels

    model = load_world_model(path, TINY)
    samples = load_checkpoint(path / "world_samples.pt", SAMPLES).state
    found = model.predict(samples["obs"], samples["joint"], samples["t"])
    torch.testing.assert_close(found.planes.detach(), samples["planes"])  # the best epoch is what was saved
    assert samples["planes"].shape[1:] == (3, 3, 5)


def test_dense_reports_both_losses(folder: Path, data: Dataset) -> None:
    trainer = WorldTrainer(small(folder, model="dense", channel_weights=(2.0, 2.0, 1.0, 1.0, 1.0)), data)
    values = trainer.iterate()
    ratio = values["wm/validation/weighted_loss"] / values["wm/validation/unweighted_loss"]
    assert 0.5 < ratio < 2.0 and ratio != 1.0
    assert values["wm/validation/loss"] == pytest.approx(values["wm/validation/weighted_loss"], rel=1e-4)


def test_refusals(folder: Path, tmp_path: Path) -> None:
    for wrong in ({"epochs": 0}, {"channel_weights": (1.0,)}, {"learning_rate": 0.0}):
        with pytest.raises(UserError):
            small(folder, **wrong)
    with pytest.raises(UserError, match="no data set"):
        pretrain_world(small(tmp_path), RunOptions(output_dir=tmp_path / "run"))
    with pytest.raises(UserError, match="channel_weights"):
        pretrain_world(
            small(folder, model="dense", channel_weights=(1.0, 2.0)), RunOptions(output_dir=tmp_path / "run")
        )
    assert not (tmp_path / "run").exists()


def test_command_line(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--data", str(folder), "--epochs", "1", "--output-dir", str(tmp_path / "run")]
    assert command(words) == 0
    said = capsys.readouterr().out
    assert "loaded obs shape (3, 3, 5)" in said and "teleport" in said
