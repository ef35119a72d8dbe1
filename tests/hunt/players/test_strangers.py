"""Noisy players and strangers with a lasting goal."""

from __future__ import annotations

import pytest
import torch

from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.game.views import View
from marlab.hunt.players.characters import Noisy, parse_character
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind, Role
from marlab.hunt.players.strangers import KeepingPlayers, NoisyPlayers, seat_characters
from marlab.lab.errors import UserError
from tests.hunt.helpers import seeded

GAME = make_game(game_config("msh_4x4"))


def test_noise_acts_as_often_as_its_distribution_says() -> None:
    start = GAME.reset(1, seeded(0))
    state = type(start)(*(field.expand(20_000, *field.shape[1:]) for field in start))
    players = NoisyPlayers(GAME, Noisy(0.3, Role(Kind.NS)))
    view, memory = View(GAME, state), players.begin(20_000, seeded(1))
    actions, _ = players.act(view, memory, seeded(2))
    expected = players.probabilities(view, memory)[0]
    found = torch.stack([(actions == a).double().mean(0) for a in range(GAME.actions)], 1)
    assert torch.allclose(found, expected.double(), atol=0.015)
    sensible = RulePlayers(GAME, [Kind.NS] * 4)
    assert not torch.allclose(expected, sensible.probabilities(view, sensible.begin(1, seeded(1)))[0], atol=0.1)


def test_without_noise_the_rule_is_left() -> None:
    state = GAME.reset(200, seeded(3))
    view, numbers = View(GAME, state), torch.rand(200, 4, generator=seeded(4))
    quiet, rule = NoisyPlayers(GAME, Noisy(0.0, Role(Kind.NH))), RulePlayers(GAME, [Kind.NH] * 4)
    assert torch.equal(
        quiet.act(view, quiet.begin(200, seeded(0)), numbers)[0], rule.act(view, rule.begin(200, seeded(0)), numbers)[0]
    )


def test_a_keeper_is_the_same_in_every_episode_and_drawn_anew_for_a_new_team() -> None:
    players = KeepingPlayers(GAME, 0.5)
    memory = players.begin(64, seeded(0))
    assert 0.3 < (memory["type"] == Kind.NS).float().mean() < 0.7
    later = players.reset(memory, torch.ones(64, dtype=torch.bool), seeded(1))
    assert torch.equal(later["type"], memory["type"])
    assert not torch.equal(players.begin(64, seeded(1))["type"], memory["type"])


def test_every_seat_has_its_character() -> None:
    everybody = seat_characters(GAME, [parse_character(name) for name in ("NS", "KEEP", "GRIM(1)", "NOISY(0.1,NH)")])
    view = View(GAME, GAME.reset(5, seeded(0)))
    actions, _ = everybody.act(view, everybody.begin(5, seeded(0)), seeded(1))
    assert actions.shape == (5, 4)
    assert isinstance(seat_characters(GAME, [parse_character("NS")] * 4), RulePlayers)
    with pytest.raises(UserError, match="one per player"):
        seat_characters(GAME, [parse_character("NS")])
