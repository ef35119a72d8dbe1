"""Guests in games of learners, and their settings."""

from __future__ import annotations

import pytest
import torch

from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.players.guests import RuleGuests
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import GuestConfig, Kind
from marlab.hunt.ppo.world import HuntWorld
from marlab.lab.errors import UserError
from tests.hunt.helpers import seeded

GAME = make_game(game_config("msh_4x4"))


def test_parties_are_as_many_as_asked_and_leave_somebody_to_learn() -> None:
    guests = RuleGuests(GuestConfig(share=0.6), GAME, 4000, seeded(0))
    assert abs(guests.mixed_games.float().mean() - 0.6) < 0.05
    assert not guests.seats.all(1).any()
    assert 0.5 < (guests.types == guests.types[:, :1]).all(1).float().mean() < 0.7  # half of one mind, others by chance
    before = guests.seats
    guests.next_episode(torch.zeros(4000, dtype=torch.bool))
    assert torch.equal(before, guests.seats)
    guests.next_episode(torch.ones(4000, dtype=torch.bool))
    assert 0.02 < (before != guests.seats).any(1).float().mean() < 0.2  # a tenth of the parties leaves


def test_guests_act_by_their_rules_and_teach_nothing() -> None:
    world = HuntWorld(GAME, 300, seeded(1), guests=GuestConfig(share=1.0))
    assert world.guests is not None
    rules = RulePlayers(GAME, [Kind.NS] * 4)
    options = rules.options(world.view, rules.memory_of(world.guests.types))
    seats, alive = world.guests.seats, world.state.alive
    assert not (world.acting & seats).any() and bool((world.acting == (alive & ~seats)).all())
    world.step(torch.full((300, 4), 4))
    acted = world.state.last_action
    taken = options.gather(2, acted.clamp_max(GAME.actions - 1).unsqueeze(2)).squeeze(2)
    assert bool(taken[seats & world.state.alive].all())
    assert bool((acted[~seats & world.state.alive] == 4).all())


def test_a_world_with_guests_goes_on_where_it_was() -> None:
    one, other = (HuntWorld(GAME, 20, seeded(2), guests=GuestConfig(share=0.7)) for _ in range(2))
    for _ in range(30):
        one.step(torch.full((20, 4), 4))
    other.load_state_dict(one.state_dict())
    for _ in range(20):
        one.step(torch.full((20, 4), 4))
        other.step(torch.full((20, 4), 4))
    assert torch.equal(one.state.cell, other.state.cell)
    assert one.guests is not None and other.guests is not None and torch.equal(one.guests.seats, other.guests.seats)


def test_guests_need_tables_where_everybody_learns() -> None:
    with pytest.raises(UserError, match="every seat learns"):
        HuntWorld(GAME, 2, seeded(0), seats=[0], others=RulePlayers(GAME, [Kind.NS] * 4), guests=GuestConfig())


@pytest.mark.parametrize("change", [{"share": 1.5}, {"stay": 1.0}])
def test_shares_are_shares(change: dict[str, float]) -> None:
    with pytest.raises(UserError, match="expected shares"):
        GuestConfig(**change)
