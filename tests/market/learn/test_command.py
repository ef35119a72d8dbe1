"""The presets and flags of `marlab market train`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from marlab.cli import main
from marlab.lab.config import from_dict, load_preset
from marlab.market.learn.command import PRESETS as TRAIN_PRESETS
from marlab.market.learn.command import MarketTrainConfig

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
