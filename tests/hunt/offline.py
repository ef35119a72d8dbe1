"""A small offline data set for the tests of models that learn from one."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp

from marlab.hunt.data.collect import collect
from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.data.dataset import Dataset, load_dataset
from marlab.hunt.game.config import game_config
from marlab.lab.runs.run import RunOptions


@lru_cache(maxsize=4)
def offline_data(game: str = "msh_4x4", rows: int = 6000, rand_share: float = 0.0) -> Dataset:
    """Rule-based episodes of a shipped game, made once per test process."""
    config = HuntCollectConfig(game_config(game), rows=rows, rand_share=rand_share)
    return load_dataset(collect(config, RunOptions(output_dir=Path(mkdtemp()) / "data"), quiet=True).path)
