"""Reachable situations: memory in their codes, phases of the time, candidates of a seat."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from marlab.hunt.exact.situations import Others, encode, explore
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.players.seats import Kind, parse_role
from tests.hunt.helpers import seeded

GAME = make_game(game_config("msh_tiny"))


def test_the_choices_of_every_candidate_are_a_distribution() -> None:
    others = Others(GAME, [[Kind.NS], [Kind.NS, Kind.NH, parse_role("SWITCH(3)")]], 0)
    there = explore(others, GAME.reset(1, seeded(0)))
    assert there.times == (0, 3) and others.count == [1, 3]
    for edges in there.phases:
        assert (edges.chance[:, 0] == 1).all()
        place = edges.source * GAME.actions + edges.action
        for k in range(3):
            total = np.bincount(place, edges.chance[:, 1, k])
            assert total[np.unique(place)] == pytest.approx(1.0)
    early, late = there.phases
    assert (early.chance[:, 1, 2] == early.chance[:, 1, 0]).all()  # before the time it is a stag hunter
    assert (late.chance[:, 1, 2] == late.chance[:, 1, 1]).all()


def test_who_waits_is_another_situation_and_who_only_wanders_is_none() -> None:
    start = GAME.reset(1, seeded(0))._replace(cell=torch.tensor([[0, 4]]), prey_cell=torch.tensor([[4, 8]]))
    plain = explore(Others(GAME, [[Kind.NS], [Kind.NS]], 0), start)
    patient = explore(Others(GAME, [[Kind.NS], [parse_role("WAIT(3)")]], 0), start)
    assert len(patient.codes) > len(plain.codes)
    others = Others(GAME, [[Kind.NS], [Kind.NS]], 0)
    gone = start._replace(prey_alive=torch.tensor([[False, True]]))
    zeros = torch.zeros_like(start.cell)
    here, there = (encode(GAME, *others.canonical(gone._replace(cell=torch.tensor([[0, c]])), zeros)) for c in (1, 7))
    assert here == there
