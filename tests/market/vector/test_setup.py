"""Setups: levels stand at the end, and the last one calls."""

from __future__ import annotations

import torch

from marlab.market.vector.configs import join
from marlab.market.vector.setup import buyer_calls, by_side, make_setup, pairs_of
from tests.market.vector_worlds import small_config


def test_worlds_of_different_shapes_end_at_the_same_level() -> None:
    setup = make_setup(join([small_config((1, 2), 4), small_config((2, 1, 3), 6)]))
    assert setup.shape == (2, 3, 3)
    assert setup.exists.tolist()[0] == [[False] * 3, [True, False, False], [True, True, False]]
    assert setup.exists.tolist()[1] == [[True, True, False], [True, False, False], [True] * 3]
    assert setup.first.tolist() == [[False, True, False], [True, False, False]]
    assert setup.catalogue.tolist() == [[0, 10, 20, 30], [10, 20, 30, 40]]
    assert setup.quantity_max.tolist() == [30, 30] and setup.n_steps.tolist() == [4, 6]
    assert setup.shortfall.shape == (2, 6, 3, 3)


def test_the_last_level_calls_and_then_every_second_one_upstream() -> None:
    """By processes: {1}, {0, 2}, {1, 3} call for 2, 3 and 4 processes."""
    for levels, callers in ((2, {1}), (3, {0, 2}), (4, {1, 3})):
        found = {k + 1 if buyer_calls(k, levels) else k for k in range(levels - 1)}
        assert found == callers


def test_threads_and_sides() -> None:
    seats = torch.arange(6).reshape(1, 3, 2)  # level 0: 0 1, level 1: 2 3, level 2: 4 5
    calling, answering = pairs_of(seats)
    assert calling[0, :, :, 0].tolist() == [[0, 1], [4, 5]] and answering[0, :, 0].tolist() == [[2, 3], [2, 3]]
    threads = calling * 10 + answering  # caller, responder
    for k in range(2):
        seller, buyer = by_side(threads[:, k], k, 3)
        assert seller.transpose(1, 2).equal(buyer)
    assert by_side(threads[:, 1], 1, 3)[0][0].tolist() == [[42, 52], [43, 53]]  # sellers of level 1 in rows


def test_shapes_can_be_larger_than_needed() -> None:
    setup = make_setup(small_config((1, 1), 3), torch.float64, shape=(4, 5, 9))
    assert setup.shape == (1, 4, 5) and setup.shortfall.shape == (1, 9, 4, 5) and setup.exists.sum() == 2
    assert setup.balance.dtype == torch.float64
