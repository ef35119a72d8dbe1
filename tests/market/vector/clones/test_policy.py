"""Clones at play: moves that the market takes, nothing drawn from outside, patience as the weights say."""

from __future__ import annotations

import pytest
import torch

from marlab.market.vector.builtin import Seated, play
from marlab.market.vector.clones.inputs import SO_FAR
from marlab.market.vector.clones.policy import Clones
from marlab.market.vector.market import Market
from marlab.market.vector.rounds import ACCEPT, END, HALVES, OFFER
from marlab.market.vector.seats import Seats, moving
from tests.market.clone_cases import fresh_market, small_pack


def seated(market: Market, seed: int, experts: int = 2, **changes: float) -> tuple[Seated, Clones]:
    weights = {name: values.clone() for name, values in small_pack(experts).weights.items()}
    for name, value in changes.items():
        weights[name] = torch.full_like(weights[name], value)
    expert = torch.arange(market.setup.lines.numel()).view(market.setup.lines.shape) % experts
    policy = Clones(market, weights, expert, torch.Generator().manual_seed(seed))
    return Seated(market, torch.ones_like(market.setup.lines), {1: policy}, None), policy


def test_the_same_seed_gives_the_same_world() -> None:
    scores = []
    for seed in (1, 1, 2):
        market = fresh_market()
        play(market, seated(market, seed)[0])
        scores.append(market.scores().nan_to_num())
    assert torch.equal(scores[0], scores[1]) and not torch.equal(scores[0], scores[2])


def test_every_answer_is_possible() -> None:
    market = fresh_market()
    _, policy = seated(market, 0)
    seats = Seats(market)
    market.open_day()
    policy.open(market)
    for _ in range(6):
        policy.hear(market)
        rows = seats.rows(moving(market))
        moves, places = policy.answer(market, rows)
        assert len(places.unique()) == len(places) and market.threads.running.view(-1)[places].all()
        assert len(places) == int(market.threads.running.sum())
        offers = moves.op == OFFER
        assert (moves.units[offers] >= 1).all() and (moves.units <= market.quantity_most).all()
        low, high = (v.expand_as(market.threads.units).reshape(-1)[places] for v in market.ranges[:2])
        assert ((moves.price >= low) & (moves.price <= high))[offers].all()
        assert (moves.ahead <= market.ranges.ahead_max.expand_as(market.threads.units).reshape(-1)[places])[
            offers
        ].all()
        if market.half == 0:
            assert not (moves.op == ACCEPT).any()
        full = [torch.zeros_like(market.threads.units) for _ in range(4)]
        for values, answer in zip(full, moves):
            values.view(-1)[places] = answer
        market.move(type(moves)(*full))


@pytest.mark.parametrize("round_", [0, 3])
def test_patience_is_what_the_weights_say(round_: int) -> None:
    market = fresh_market()
    both, policy = seated(market, 0, heads=0.0, heads_bias=0.0, leave_round=-50.0)
    policy.weights["heads_bias"][:, :, 1] = -50.0  # nobody accepts
    policy.weights["leave_round"][:, round_] = 50.0
    market.open_day()
    both.open(market)
    running = market.threads.running.clone()
    for _ in range(HALVES):
        market.move(both(market))
    assert (market.threads.ended_half[running] == 2 * round_).all() and (market.threads.agreed_units == 0).all()


def test_what_was_answered_before_is_known_to_the_next_partner() -> None:
    """A clone that offers where nothing was answered before on its side, and leaves everywhere else."""
    market = fresh_market(worlds=2, levels=(2, 2))
    both, policy = seated(market, 0, experts=1)
    weights = {name: torch.zeros_like(values) for name, values in policy.weights.items()}
    weights["inputs"][:, -SO_FAR + 4, 0] = weights["middle"][:, 0, 0] = 1.0  # the count of answers on this side
    weights["heads"][:, 0, 0], weights["leave_round"][:] = 4000.0, -100.0
    policy.weights = weights
    market.open_day()
    both.open(market)
    policy.hear(market)
    moves, places = policy.answer(market, Seats(market).rows(moving(market)))
    op = torch.full(market.threads.units.shape, -1)
    op.view(-1)[places] = moves.op.long()
    callers = market.threads.running.any(3)  # [B, P, C]
    assert ((op == OFFER).sum(3)[callers] == 1).all() and ((op == END).sum(3)[callers] >= 1).any()
    first = market.threads.running.long().argmax(3, keepdim=True)
    assert (op.gather(3, first)[..., 0][callers] == OFFER).all()
