"""Worlds that the simulator played, replayed: everything must follow. Fresh worlds: tests/market/verify."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from marlab.lab.errors import UserError
from marlab.market.vector.replay import Recorded, fractional, from_bytes, read, replay_contracts, replay_moves
from tests.market.vector_worlds import recorded_worlds


@pytest.fixture(scope="module")
def worlds() -> list[Recorded]:
    return recorded_worlds()


def test_the_recorded_worlds_are_worth_replaying(worlds: list[Recorded]) -> None:
    assert len(worlds) == 7 and {len(w.config.sizes[0]) for w in worlds} >= {2, 3}
    assert any(w.bankrupt.any() for w in worlds) and {w.sync for w in worlds} == {True, False}


def test_contracts_give_the_simulators_money_stock_and_prices_on_every_day(worlds: list[Recorded]) -> None:
    for world, again in zip(worlds, replay_contracts(worlds)):
        for name in ("balance", "stock", "prices", "scores"):
            np.testing.assert_allclose(getattr(again, name), getattr(world, name), rtol=1e-9, atol=1e-9, err_msg=name)
        assert (again.bankrupt == world.bankrupt).all()


def test_moves_give_the_simulators_contracts_and_everything_after_them(worlds: list[Recorded]) -> None:
    for world, again in zip(worlds, replay_moves(worlds)):
        talks, ends, signed = world.tables["negotiations"], again.ends, world.tables["contracts"]
        assert ends is not None and again.unanswered == 0
        np.testing.assert_array_equal(ends["outcome"], talks["outcome"])
        mine = signed["negotiation"] >= 0
        for ours, theirs in (("units", "quantity"), ("price", "price"), ("delivery", "delivery")):
            np.testing.assert_array_equal(ends[ours][signed["negotiation"][mine]], signed[theirs][mine])
        assert (ends["units"] > 0).sum() == mine.sum()
        np.testing.assert_allclose(again.balance, world.balance, rtol=1e-9)


def test_single_precision_stays_close(worlds: list[Recorded]) -> None:
    for world, again in zip(worlds, replay_contracts(worlds, torch.float32)):
        np.testing.assert_allclose(again.scores, world.scores, atol=1e-4)


def test_a_recorded_world_survives_its_file(worlds: list[Recorded], tmp_path: Path) -> None:
    again = from_bytes(worlds[0].to_bytes())
    assert again.world_id == worlds[0].world_id and again.sync == worlds[0].sync
    np.testing.assert_array_equal(again.balance, worlds[0].balance)
    np.testing.assert_array_equal(again.config.shortfall, worlds[0].config.shortfall)
    with pytest.raises(UserError, match="not a recorded world"):
        read(tmp_path / "none.npz")


def test_an_offer_that_no_negotiation_saw_had_a_fraction(worlds: list[Recorded]) -> None:
    world = next(w for w in worlds if len(w.tables["offers"]["round"]))
    assert not fractional(world).any()
    without = {name: values[1:] for name, values in world.tables["offers"].items()}
    changed = Recorded(**{**vars(world), "tables": {**world.tables, "offers": without}})
    assert fractional(changed).sum() == 1
