"""The presets and flags of `marlab market train`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from marlab.cli import main
from marlab.lab.config import from_dict, load_preset
from marlab.market.learn.command import PRESETS as TRAIN_PRESETS
from marlab.market.learn.command import MarketTrainConfig
from marlab.market.learn.command import main as train_main
from tests.market.sample_tools import TINY

pytest.importorskip("scml")
pytest.importorskip("jinja2")


@pytest.mark.parametrize("name", sorted(file.stem for file in TRAIN_PRESETS.glob("*.toml")))
def test_training_presets_are_valid(name: str) -> None:
    config = from_dict(MarketTrainConfig, load_preset(name, TRAIN_PRESETS).values, name)
    assert config.chosen == ["l2", "l3", "l4"] and config.l2_q_transform == "log1p" and config.l2_q_weight == 2
    assert config.l3_residual_loss == "huber" and all(config.epochs(phase) > 5 for phase in config.chosen)


def test_the_full_recipe() -> None:
    recipe = from_dict(MarketTrainConfig, load_preset("penguin", TRAIN_PRESETS).values, "penguin")
    assert recipe.stages("l2") == [(40, 3e-4), (10, 1e-4), (10, 5e-5)]
    assert recipe.stages("l3") == [(20, 5e-4), (8, 1e-4)] and recipe.l3_batch_size == 1024
    assert recipe.stages("l4") == [(8, 1e-3), (2, 2e-4)] and recipe.l4_batch_size == 512
    assert (recipe.l3_width, recipe.l3_layers) == (128, 4)


def test_the_command_knows_its_presets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["market", "train", str(tmp_path / "none"), "--preset", "smal"]) == 2
    assert re.search(r"no preset 'smal'.*did you mean '?small", capsys.readouterr().err)


def test_the_runbooks_training_command_runs_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Logs in, weights out; flags without effect are accepted, each with the line that says what replaced it."""
    for drawing in ("draw_phase", "draw_losses"):
        monkeypatch.setattr(f"marlab.market.learn.figures.{drawing}", lambda *_: None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "history").mkdir()
    (tmp_path / "history" / "tiny.parquet").write_bytes(TINY.read_bytes())
    words = """--tournament-dir history --output-dir out --agent-name PenguinAgent --phases l2,l3,l4 --num-workers 1
        --val-ratio 0.1 --test-ratio 0.05 --split-seed 42 --l3-goal-backfill l2 --l4-goal-source l2 --l3-awr
        --l2-epochs 1 --l3-epochs 1 --l4-epochs 1 --awr-epochs 1 --l2-batch-size 512 --l3-batch-size 256
        --l4-batch-size 32 --l2-lr 3e-4 --l3-lr 1e-4 --l4-lr 3e-4 --l2-q-transform log1p --l2-q-weight 2
        --l2-backfill-device cuda --l2-backfill-batch-size 1024 --backfill-world-chunk 256 --device cpu --save-every 1
        --l3-pre-tensorize --tensorize-workers 8 --dataloader-workers 16 --dataloader-pin-memory
        --dataloader-persistent-workers --dataloader-prefetch-factor 4 --no-progress-bar --batch-log-every 200
        --no-resume --l3-width 16 --l3-layers 1""".split()
    assert main(["market", "train", *words]) == 0
    said = capsys.readouterr().out
    for flag in ("--l2-backfill-device", "--dataloader-workers", "--batch-log-every", "--no-resume"):
        assert f"{flag} has no effect in marlab market train: " in said
    made = {path.name for path in (tmp_path / "out" / "checkpoints").iterdir()}
    assert {"l2_bc.pt", "l3_bc.pt", "l3_awr.pt", "l4_distill.pt"} <= made
    assert main(["market", "train", *words, "--resume"]) == 0  # the samples are found again
    assert main(["market", "train", "samples", *words]) == 2
    assert "not both" in capsys.readouterr().err
    assert main(["market", "train", "--tournament-dir", "history", "--stats-only"]) == 2


def test_rates_have_the_names_of_the_other_worlds_too() -> None:
    parsed = train_main.parse("samples --l2-learning-rate 1e-3 --awr-learning-rate=2e-5 --l3-lr 3e-4".split())
    assert (parsed.config.l2_lr, parsed.config.awr_lr, parsed.config.l3_lr) == (1e-3, 2e-5, 3e-4)
