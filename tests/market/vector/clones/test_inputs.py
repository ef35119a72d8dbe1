"""What clones see: the same in a replay and in play, and nothing that is not known yet."""

from __future__ import annotations

from dataclasses import fields

import torch
from torch import Tensor

from marlab.market.vector.builtin import Seated, play
from marlab.market.vector.clones.inputs import MOST, ROW, SIDE, THREAD, Inputs, Watch, added
from marlab.market.vector.market import Market
from marlab.market.vector.replay import watch_moves
from marlab.market.vector.rounds import END, Moves
from marlab.market.vector.rule_w import RuleW
from marlab.market.vector.seats import Policy, Rows, Seats, moving
from marlab.market.vector.setup import make_setup
from tests.market.clone_cases import fresh_market
from tests.market.vector_worlds import recorded_worlds


class Looking(Policy):
    """A policy that also keeps what a clone in its place would see."""

    def __init__(self, market: Market, inner: Policy) -> None:
        self.inner, self.watch, self.seen = inner, Watch(market), list[Inputs]()

    def open(self, market: Market) -> None:
        self.inner.open(market)
        self.watch.open(market)

    def hear(self, market: Market) -> None:
        self.inner.hear(market)
        self.watch.hear(market)

    def close(self, market: Market) -> None:
        self.inner.close(market)
        self.watch.close(market)

    def answer(self, market: Market, rows: Rows) -> tuple[Moves, Tensor]:
        self.seen.append(self.watch.at(market, rows))
        return self.inner.answer(market, rows)


class Replaying:
    """The same in a replay."""

    def __init__(self, market: Market) -> None:
        self.watch, self.seats, self.seen = Watch(market), Seats(market), list[Inputs]()

    def open(self, market: Market) -> None:
        self.watch.open(market)

    def close(self, market: Market) -> None:
        self.watch.close(market)

    def before(self, market: Market, moves: Moves, silent: Tensor) -> None:
        self.watch.hear(market)
        rows = self.seats.rows(moving(market))
        if len(rows):
            self.seen.append(self.watch.at(market, rows))


def test_inputs_of_a_replay_are_those_of_play() -> None:
    world = recorded_worlds()[1]  # everybody plays rule W, which draws nothing, so the world can be played again
    market = Market(make_setup(world.config, torch.float64))
    looking = Looking(market, RuleW(market))
    play(market, Seated(market, torch.ones_like(market.setup.lines), {1: looking}, None), days=2)
    notes: list[Replaying] = []

    def look(replayed: Market) -> Replaying:
        notes.append(Replaying(replayed))
        return notes[0]

    watch_moves([world], look)
    assert len(notes[0].seen) > len(looking.seen) > 20
    for there, here in zip(notes[0].seen, looking.seen):
        for field in fields(Inputs):
            one, other = getattr(there, field.name), getattr(here, field.name)
            assert torch.equal(one, other) if isinstance(one, Tensor) else one == other, field.name


def test_inputs_have_their_sizes_and_stay_small() -> None:
    market = fresh_market()
    looking = Looking(market, RuleW(market))
    play(market, Seated(market, torch.ones_like(market.setup.lines), {1: looking}, None), days=3)
    for seen in looking.seen:
        assert (seen.row.shape[-1], seen.side.shape[-1], seen.thread.shape[-1]) == (ROW, SIDE, THREAD)
        for part in (seen.row, seen.side, seen.thread):
            assert part.isfinite().all() and part.abs().max() <= MOST
    assert any(seen.on_table.any() for seen in looking.seen)


def test_nothing_of_the_future_is_seen() -> None:
    market, other = fresh_market(), fresh_market()
    tomorrow = {name: getattr(other.setup, name).clone() for name in ("supply_units", "demand_units", "shortfall")}
    for values in tomorrow.values():
        values[:, 1:] += 1
    other.setup = other.setup._replace(**tomorrow)
    rows = Seats(market).rows(market.setup.exists)
    found = []
    for each in (market, other):
        watch = Watch(each)
        each.open_day()
        watch.open(each)
        found.append(watch.at(each, rows))
    assert all(torch.equal(getattr(found[0], part), getattr(found[1], part)) for part in ("row", "side", "thread"))


def test_a_pair_remembers_who_left() -> None:
    market = fresh_market()
    watch = Watch(market)
    market.open_day()
    watch.open(market)
    running = market.threads.running
    none = torch.zeros_like(market.threads.units)
    market.move(Moves(none + END, none, none, none))
    watch.close(market)
    assert (watch.pairs[4][running] > 0).all() and (watch.pairs[5] == 0).all() and (watch.pairs[1] == 0).all()
    assert (watch.pairs[:, ~running] == 0).all()


def test_answers_add_up_by_day() -> None:
    yes, no = torch.tensor([True, False]), torch.tensor([False, True])
    sums = added(yes, no, torch.tensor([5, 7]), torch.tensor([0, 2]))
    assert torch.allclose(sums, torch.tensor([[0.5, 0, 0, 0, 0.125], [0, 0, 0, 0.7, 0.125]]))
