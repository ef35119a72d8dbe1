"""Configs that the simulator drew, exported: every number of them, against the simulator's own world."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from marlab.market.vector.configs import load
from marlab.market.verify.export import export
from marlab.market.verify.settings import ConfigsConfig


def test_a_file_of_fresh_configs(tmp_path: Path) -> None:
    pytest.importorskip("scml")
    config = ConfigsConfig(tmp_path / "deep" / "c.npz", count=3, levels=(2, 3), factories=(1, 2), days=(6, 9), seed=5)
    drawn, again = export(config), load(config.file)
    assert len(again) == 3 and again.n_steps.max() <= 9
    np.testing.assert_array_equal(again.supply_units, drawn.supply_units)
    np.testing.assert_array_equal(again.balance, drawn.balance)
    assert (export(config).demand_price == drawn.demand_price).all()  # the same seed draws the same markets
