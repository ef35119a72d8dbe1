"""Worlds that the simulator played, replayed: everything must follow. Fresh worlds: tests/market/verify."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from marlab.lab.errors import UserError
from marlab.market.logs.worldfile import read_world
from marlab.market.vector.replay import Recorded, fractional, replay_contracts, replay_moves
from tests.market.vector_worlds import GOLDEN, recorded_worlds


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


def test_answers_of_agents_that_were_not_tracked_follow_from_their_offers(worlds: list[Recorded]) -> None:
    """A collection tracks experts only, and its worlds can be replayed all the same."""
    for path, world in zip(sorted(GOLDEN.glob("*.parquet")), worlds):
        log = read_world(path)
        agents = [agent | {"tracked": f % 2 == 0} for f, agent in enumerate(log.agents)]
        heard = log.tables["decisions"]["agent"] % 2 == 0
        few = {name: values[heard] for name, values in log.tables["decisions"].items()}
        part = Recorded.of(replace(log, meta=log.meta | {"agents": agents}, tables=log.tables | {"decisions": few}))
        assert not len(part.mornings) and len(part.tables["decisions"]["op"]) > heard.sum()
        (again,) = replay_moves([part])
        assert again.unanswered == 0 and again.ends is not None
        np.testing.assert_array_equal(again.ends["outcome"], world.tables["negotiations"]["outcome"])
        np.testing.assert_allclose(again.balance, world.balance, rtol=1e-9)


@pytest.mark.parametrize("wrong", ["cut", "levels", "evenings", "storage"])
def test_logs_that_cannot_be_replayed_are_refused(wrong: str) -> None:
    log = read_world(sorted(GOLDEN.glob("*.parquet"))[0])
    meta, tables = dict(log.meta), dict(log.tables)
    if wrong == "cut":
        meta["days_played"] = 2
    elif wrong == "levels":
        meta["agents"] = [agent | {"level": 10**12} for agent in log.agents]
    else:
        evenings = dict(tables["evenings"])
        kept = slice(None, -1) if wrong == "evenings" else slice(None)
        tables["evenings"] = {name: values[kept].copy() for name, values in evenings.items()}
        tables["evenings"]["storage"][0] += 1
    with pytest.raises(UserError, match=r"ended on day|does not hold what a replay needs|changes its storage"):
        Recorded.of(replace(log, meta=meta, tables=tables))


def test_an_offer_that_no_negotiation_saw_had_a_fraction(worlds: list[Recorded]) -> None:
    world = next(w for w in worlds if len(w.tables["offers"]["round"]))
    assert not fractional(world).any()
    without = {name: values[1:] for name, values in world.tables["offers"].items()}
    changed = Recorded(**{**vars(world), "tables": {**world.tables, "offers": without}})
    assert fractional(changed).sum() == 1
