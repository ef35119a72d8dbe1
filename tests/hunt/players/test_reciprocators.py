"""Players who remember how the last episodes went."""

from __future__ import annotations

import pytest
import torch

from marlab.hunt.game.config import game_config
from marlab.hunt.players.characters import parse_reciprocity
from marlab.hunt.players.policy import Team
from marlab.hunt.players.reciprocators import Reciprocators
from marlab.hunt.players.rollout import moments
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind
from marlab.lab.errors import UserError
from tests.hunt.helpers import seeded, small_game


def test_reciprocators_are_parsed() -> None:
    grim, tft = parse_reciprocity("GRIM(2)"), parse_reciprocity("TFT")
    assert str(grim) == "GRIM(2)" and str(tft) == "TFT" and parse_reciprocity("NS") is None
    with pytest.raises(UserError, match="0 strikes"):
        parse_reciprocity("GRIM(0)")
    with pytest.raises(UserError, match="value it does not take"):
        parse_reciprocity("TFT(1)")


def wants_after(rule: str, others: list[Kind], episodes: int) -> list[float]:
    """Share of games in which the reciprocator in seat 1 hunts the stag, before each episode."""
    game = small_game(game_config("msh_4x4"))
    how = parse_reciprocity(rule)
    assert how is not None
    everybody = Team(game, [Reciprocators(game, how), RulePlayers(game, [Kind.NS, *others])], [0, 1, 1, 1])
    generator = seeded(4)
    memory = everybody.begin(64, generator)
    found = []
    for _ in range(episodes):
        found.append(float((memory["0/type"][:, 0] == Kind.NS).float().mean()))
        final = memory
        for moment in moments(game, everybody, game.reset(64, generator), memory, generator):
            seen = everybody.observe(moment.view, moment.outcome, moment.memory)
            running = moment.running
            final = {k: torch.where(running.view(-1, *[1] * (v.dim() - 1)), seen[k], final[k]) for k, v in seen.items()}
        memory = everybody.reset(final, torch.ones(64, dtype=torch.bool), generator)
    return found


def test_grim_gives_up_after_its_strikes_and_never_before() -> None:
    alone = [Kind.NH, Kind.NH, Kind.NH]
    assert wants_after("GRIM(1)", alone, 3) == [1.0, 0.0, 0.0]
    assert wants_after("GRIM(2)", alone, 4) == [1.0, 1.0, 0.0, 0.0]
    assert wants_after("GRIM(1)", [Kind.NS, Kind.NH, Kind.NH], 4) == [1.0] * 4


def test_tit_for_tat_comes_when_somebody_came() -> None:
    assert wants_after("TFT", [Kind.NS, Kind.NH, Kind.NH], 3) == [1.0] * 3
    gone = wants_after("TFT", [Kind.NH, Kind.NH, Kind.NH], 3)
    assert gone[0] == 1.0 and gone[1] < 0.35  # a hare catcher may pass over the stag on its way
