"""Configs: the file keeps them, refuses what is none, and 200 are shipped."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from marlab.lab.errors import UserError
from marlab.market.vector.configs import RATE_UNIT, SHIPPED, Configs, check, join, load, save, shipped
from tests.market.vector_worlds import small_config


def test_a_file_gives_back_what_was_saved(tmp_path: Path) -> None:
    both = join([small_config((1, 2), 4), small_config((2, 1, 3), 6)])
    save(tmp_path / "c.npz", both)
    again = load(tmp_path / "c.npz")
    for f in fields(Configs):
        np.testing.assert_allclose(getattr(again, f.name), getattr(both, f.name), atol=RATE_UNIT / 2)
    assert again.exists.sum() == 9


def test_taking_some_worlds_cuts_their_padding() -> None:
    both = join([small_config((1, 2), 4), small_config((2, 1, 3), 6)])
    first = both.take([0, 0])
    assert first.lines.shape == (2, 2, 2) and first.shortfall.shape == (2, 2, 2, 4) and first.catalogue.shape == (2, 3)
    np.testing.assert_array_equal(first.catalogue[1], [10, 20, 30])


def test_the_shipped_ones_have_all_shapes_and_are_small() -> None:
    configs = shipped()
    assert len(configs) == 200 and SHIPPED.stat().st_size < 2_000_000
    assert set(configs.n_levels) == {2, 3, 4}
    assert set(configs.sizes[configs.sizes > 0]) == set(range(3, 9))
    assert configs.n_steps.min() >= 50 and configs.n_steps.max() <= 200 and np.ptp(configs.n_steps) > 100


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"n_levels": np.array([1])}, "n_levels"),
        ({"n_steps": np.array([4])}, "n_steps"),
        ({"balance": np.zeros((1, 2, 1))}, "balances"),
        ({"lines": np.full((1, 2, 1), 99)}, "lines"),
        ({"sizes": np.array([[1, 2]])}, "sizes"),
        ({"catalogue": np.array([[10, 0, 30]])}, "catalogue"),
        ({"storage": np.full((1, 2, 1), np.nan)}, "storage"),
        ({"demand_units": np.full((1, 1, 3), -1)}, "demand_units"),
        ({"cost": np.zeros((1, 2))}, "cost has shape"),
    ],
)
def test_what_is_no_market_is_refused(changes: dict[str, np.ndarray], why: str) -> None:
    with pytest.raises(UserError, match=why):
        check(replace(small_config(), **changes), "here")


def test_other_files_are_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    path.write_bytes(b"PK nonsense")
    with pytest.raises(UserError, match="not a file of market configs"):
        load(path)
    np.savez(path, version=np.array(0))
    with pytest.raises(UserError, match="version"):
        load(path)
    np.savez(path, version=np.array(1), lines=np.zeros(3))
    with pytest.raises(UserError, match="expected"):
        load(path)
    with pytest.raises(UserError, match="expected a file"):
        load(tmp_path / "missing.npz")
