"""The trainers' API: shapes, who acts, rewards, and seats that others play."""

from __future__ import annotations

import torch

from marlab.market.vector.batch import OWN, THREAD, Batch
from marlab.market.vector.builtin import Seated
from marlab.market.vector.market import Market
from marlab.market.vector.rounds import ACCEPT, END, HALVES, OFFER, Moves
from marlab.market.vector.setup import make_setup
from tests.market.vector_worlds import small_config


def batch_of(**more: object) -> Batch:
    config = small_config((2, 2), 2, supply_units=[[9] * 2] * 2, supply_price=[[10] * 2] * 2)
    return Batch(make_setup(config.take([0] * 3), torch.float64), **more)  # type: ignore[arg-type]


def same(batch: Batch, op: int, units: int = 5, price: int = 20) -> Moves:
    shape = (batch.market.worlds, batch.factories, batch.partners)
    return Moves(*(torch.full(shape, value, dtype=torch.int32) for value in (op, units, price, 0)))


def test_shapes_and_turns() -> None:
    batch = batch_of()
    seen = batch.reset()
    assert seen.acting.shape == (3, 4) and seen.own.shape == (3, 4, OWN) and seen.threads.shape == (3, 4, 4, THREAD)
    assert seen.acting[0].tolist() == [False, False, True, True]  # the last level calls
    seen, reward, done = batch.step(same(batch, OFFER))
    assert seen.acting[0].tolist() == [True, True, False, False] and not reward.any() and not done.any()
    assert seen.threads[0, 0, 2].tolist() == [1, 0.5, 0.5, 0, 0]  # five units in the middle of 18..22, for today
    assert seen.threads[0, 0, 0].tolist() == [0] * 5  # the first level has no suppliers to talk to
    assert batch.waiting()[0].int().tolist() == [[0, 0, 1, 1]] * 2 + [[0] * 4] * 2  # both answer their consumers


def test_rewards_come_in_the_evening_and_sum_to_the_score() -> None:
    batch = batch_of()
    batch.reset()
    total = torch.zeros(3, 4, dtype=torch.float64)
    for step in range(2 * HALVES):
        op = OFFER if step % HALVES == 0 else ACCEPT if step % HALVES == 1 else END
        _, reward, done = batch.step(same(batch, op))
        assert bool(reward.any()) is (step % HALVES == HALVES - 1)
        total += reward
    assert done.all() and torch.allclose(1 + total, batch.market.scores().flatten(1))


def test_others_play_their_own_seats() -> None:
    theirs = torch.zeros((3, 4), dtype=torch.bool)
    theirs[:, 2:] = True  # Random buys

    def others(market: Market) -> Seated:
        kind = torch.zeros_like(market.setup.lines)
        return Seated(market, kind, {}, torch.Generator().manual_seed(0))

    batch = batch_of(others=others, theirs=theirs)
    batch.reset()
    batch.step(same(batch, END))
    threads = batch.market.threads
    assert threads.running.all() and threads.units.unique().numel() > 3  # not ours, which would have ended all
    batch.step(same(batch, END))
    assert not threads.running.any() or not batch.market.threads.running.any()
