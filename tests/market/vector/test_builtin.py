"""Random as arrays: chances by hand. What it earns beside the real one: tests/market/verify."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from marlab.lab.errors import UserError
from marlab.market.vector.builtin import P_ACCEPT, P_END, Random, Seated, by_name, play, random_moves
from marlab.market.vector.configs import shipped
from marlab.market.vector.market import Market
from marlab.market.vector.rounds import ACCEPT, END, OFFER
from marlab.market.vector.seats import Policy
from marlab.market.vector.setup import make_setup
from marlab.market.vector.sync_random import SyncRandom
from tests.market import vector_golden
from tests.market.vector_worlds import moves, small_config


def test_any_outcome_is_as_likely_as_any_other() -> None:
    market = Market(make_setup(small_config((4, 4), 3).take([0] * 500)))
    market.open_day()
    drawn = random_moves(market, torch.Generator().manual_seed(1))
    assert (drawn.op == OFFER).all()
    for values, low, high in ((drawn.units, 1, 30), (drawn.price, 18, 22), (drawn.ahead, 0, 2)):
        counts = values.flatten().long().bincount() / values.numel()
        assert values.min() == low and values.max() == high
        assert (counts[low:] - 1 / (high - low + 1)).abs().max() < 0.03


def test_it_accepts_and_leaves_at_its_rates() -> None:
    market = Market(make_setup(small_config((4, 4), 3).take([0] * 2000)))
    market.open_day()
    market.move(moves(market, OFFER, 5, 20))
    op = random_moves(market, torch.Generator().manual_seed(2)).op
    assert (op == END).double().mean().item() == pytest.approx(P_END, abs=0.002)
    assert (op == ACCEPT).double().mean().item() == pytest.approx(P_ACCEPT * (1 - P_END), abs=0.006)


def test_seats_are_filled_by_kind() -> None:
    """Kind 1 ends everything, kind 0 is Random: threads of the first have no contract."""

    class Silent(Policy):
        def answer(self, market: Market, rows):  # type: ignore[no-untyped-def]
            places = rows.threads[rows.sides]
            none = torch.zeros_like(places)
            return moves_of(none), places

    def moves_of(none: torch.Tensor):  # type: ignore[no-untyped-def]
        return none + END, none, none, none

    market = Market(make_setup(small_config((2, 2), 3).take([0] * 64)))
    kind = torch.zeros_like(market.setup.lines)
    kind[:, 0, 0] = 1
    play(market, Seated(market, kind, {1: Silent()}, torch.Generator().manual_seed(3)), days=1)
    signed = market.threads.agreed_units > 0  # [B, 1, caller of level 1, responder of level 0]
    assert not signed[..., 0].any() and signed[..., 1].double().mean() > 0.8


def test_a_play_can_be_repeated() -> None:
    setup = make_setup(shipped().take([0]))
    balances = []
    for _ in range(2):
        market, generator = Market(setup), torch.Generator().manual_seed(4)
        kind = (torch.arange(market.wide) % 2).expand(setup.lines.shape).contiguous()
        play(market, Seated(market, kind, {1: SyncRandom(generator)}, generator), days=2)
        balances.append(market.balance)
    assert torch.equal(*balances)


def test_names() -> None:
    assert isinstance(by_name("RandomStdAgent", None), Random)
    with pytest.raises(UserError, match="not played by the vector market"):
        by_name("PenguinAgent", None)


@pytest.mark.slow
@pytest.mark.parametrize("policy", list(vector_golden.POLICIES))
def test_worlds_are_the_ones_of_the_golden_file(policy: str) -> None:
    expected = np.array(vector_golden.golden()[policy])
    found = np.array(vector_golden.balances(policy))
    if policy in vector_golden.ROUNDED:  # another machine's rounding may change a decision here and there
        assert np.isclose(found, expected, rtol=1e-6).mean() > 0.9
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-6)
