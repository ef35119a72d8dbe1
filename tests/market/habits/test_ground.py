"""Worlds with drawn habits: who sits where, and that the usual habits are the rule."""

from __future__ import annotations

import numpy as np
import torch

from marlab.market.habits import evolve
from marlab.market.habits.ground import CENTRE, DRAWN, THE_RULE, Batch, plays_of, sell
from marlab.market.rules.habits import Learnt
from marlab.market.vector.builtin import Seated, play
from marlab.market.vector.clones import load
from marlab.market.vector.generate import generate
from marlab.market.vector.market import Market
from marlab.market.vector.rule_w import RuleW
from marlab.market.vector.setup import make_setup

OTHERS = ("RandomStdAgent", "SyncRandomStdAgent")


def test_one_world_of_a_market_plays_the_rule_and_one_the_centre() -> None:
    assert plays_of(8, 4).tolist() == [THE_RULE, CENTRE, DRAWN, DRAWN] * 2


def test_two_seats_of_every_world_are_ours() -> None:
    for sizes, positions in (((3, 3), [2] * 16), ((3, 3, 3), [0] * 8 + [1] * 8)):
        asked: list[int] = []

        def drawing(position: int, count: int, rng: np.random.Generator, asked: list[int] = asked) -> evolve.Array:
            asked.append(position)
            return evolve.draw(evolve.USUAL, count, 1.0, 0.2, rng)

        sold = sell(Batch(sizes, 2, 4, 4, 0), load(), OTHERS, drawing, torch.device("cpu"))
        assert sold.position.tolist() == positions and asked == [positions[0], positions[-1]]
        assert np.isfinite(sold.score).all() and sold.habits.shape == (16, len(evolve.USUAL))
        assert sold.market.tolist() == [0, 0, 0, 0, 2, 2, 2, 2, 1, 1, 1, 1, 3, 3, 3, 3]


def scores(habits: Learnt | None, quick: bool) -> torch.Tensor:
    drawn = generate(2, np.random.default_rng(0), levels=(2, 3), factories=(3, 4), days=(14, 14))
    market = Market(make_setup(drawn, torch.float64))
    rule = RuleW(market, quick=quick, habits=habits)
    sellers = torch.zeros_like(market.setup.lines)
    sellers[:, :-1] = 1  # the last level plays at random
    play(market, Seated(market, sellers, {1: rule}, torch.Generator().manual_seed(0)))
    return market.scores()


def test_usual_habits_play_the_rule_and_others_alike_in_c_and_by_arrays() -> None:
    rule = scores(None, True)
    assert torch.allclose(scores(Learnt(), True), rule, atol=0, rtol=0, equal_nan=True)
    rng = np.random.default_rng(0)
    other = Learnt(*(tuple(evolve.draw(evolve.USUAL, 1, 1.0, 1.0, rng)[0]) for _ in range(3)))
    assert torch.allclose(scores(other, True), scores(other, False), atol=0, rtol=0, equal_nan=True)
    assert not torch.allclose(scores(other, True), rule, equal_nan=True)
