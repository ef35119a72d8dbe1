"""Decisions of recorded worlds: all of them, as the market took them."""

from __future__ import annotations

import numpy as np
import torch

from marlab.market.clones.examples import ASK, LEAVE, TAKE, answered, before_each, examples
from marlab.market.logs.worldlog import ACCEPT, END, REJECT
from marlab.market.vector.clones.inputs import ALL, Inputs
from tests.market.clone_cases import named_worlds


def test_every_recorded_decision_becomes_one_example() -> None:
    worlds = [world for world in named_worlds() if world.sync][:2]
    found = examples(worlds, ["AS0", "PenguinAgent", "SyncRandomStdAgent"])
    said = [world.tables["decisions"] for world in worlds]
    count = {op: sum(int((table["op"] == op).sum()) for table in said) for op in (ACCEPT, REJECT, END)}
    ops = np.concatenate([each.column("op") for each in found.values()])
    assert (ops == TAKE).sum() == count[ACCEPT]
    assert 0 <= count[REJECT] - (ops == ASK).sum() <= 0.05 * count[REJECT] + 1  # those out of range end a negotiation
    silent = sum(int((table["rounds"] == 1).sum()) for table in (world.tables["negotiations"] for world in worlds))
    assert count[END] <= (ops == LEAVE).sum() <= count[END] + silent + count[REJECT] - (ops == ASK).sum()


def test_examples_say_where_they_come_from() -> None:
    worlds = list(named_worlds()[:1])
    only = examples(worlds, ["AS0"])["AS0"]
    assert len(only) and set(only.column("world")) == {0}
    sizes = worlds[0].config.sizes[0]
    assert only.column("level").max() <= len(sizes) - 1 and set(only.column("last_level")) == {len(sizes) - 1}
    assert (only.column("lot") < only.column("lots")).all() and (only.column("day") < only.column("days")).all()
    assert (only.column("on_table")[only.column("op") == TAKE] == 1).all()
    assert len(only.take(np.arange(2))) == 2
    assert only.inputs.shape == (len(only), ALL)


def _seen(on_table: bool = True) -> Inputs:
    table = torch.full((1, 2, 3), on_table)
    units, ahead = torch.full((1, 2, 3), 4.0), torch.zeros((1, 2, 3))
    low, high = torch.full((1, 2, 1), 10.0), torch.full((1, 2, 1), 12.0)
    many, days = torch.full((1, 1, 1), 30), torch.full((1, 1, 1), 5)
    empty = torch.zeros(1)
    return Inputs(
        empty, empty, empty, torch.ones(1, 2, 3, dtype=torch.bool), table, units, ahead, low, high, many, days, 1
    )


def test_what_the_market_does_not_take_is_leaving() -> None:
    op = torch.tensor([ACCEPT, REJECT, END]).expand(1, 2, 3)
    units, ahead = torch.full((1, 2, 3), 31), torch.zeros((1, 2, 3), dtype=torch.long)
    price = torch.full((1, 2, 3), 11)
    accepts, offers = answered(_seen(), op, units, price, ahead)
    assert accepts[0, 0].tolist() == [True, False, False] and not offers.any()
    assert answered(_seen(), op, units - 1, price, ahead)[1][0, 0].tolist() == [False, True, False]
    assert not answered(_seen(), op, units - 1, price + 2, ahead)[1].any()
    assert not answered(_seen(), op, units - 1, price, ahead + 6)[1].any()
    assert not answered(_seen(on_table=False), op, units, price, ahead)[0].any()


def test_each_partner_knows_of_those_before_it() -> None:
    accepts = torch.tensor([[True, False, False], [False, False, False]])[None]
    offers = torch.tensor([[False, True, True], [False, True, False]])[None]
    units, ahead = torch.full((1, 2, 3), 7), torch.tensor([[0, 2, 0], [0, 0, 0]])[None]
    told = before_each(_seen(), accepts, offers, units, ahead)[0]
    assert (told[:, 0] == 0).all()
    assert torch.allclose(told[0, 1, :5], torch.tensor([0.4, 0, 0, 0, 0.125]))  # four units from the table
    assert torch.allclose(told[0, 2, :5], torch.tensor([0.4, 0, 0, 0.7, 0.25]))
    assert torch.allclose(told[1, 2, 5:], told[0, 2, :5]) and torch.allclose(told[0, 2, 5:], told[1, 2, :5])
