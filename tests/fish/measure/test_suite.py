"""The cells of the suite, and actions that come late."""

from __future__ import annotations

import torch

from marlab.fish.measure.policies import scripted
from marlab.fish.measure.suite import Cell, arenas_of, cells, delayed, measure
from marlab.fish.sea.constants import HOLD
from marlab.fish.sea.seas import SEAS


def test_one_thing_changes_at_a_time() -> None:
    cfg = SEAS["pursuit"]
    found = {cell.name: cell for cell in cells(cfg)}
    assert len(found) == 19 and found["the sea itself 0"].cfg == cfg
    assert found["fish 1000"].cfg.num_fish == 1000 and found["predator speed 3"].cfg.predator_speed_factor == 3
    assert found["vision 0.5"].cfg.vision_radius == cfg.vision_radius / 2
    assert found["delay 4"].delay == 4 and found["delay 4"].cfg == cfg
    assert (arenas_of(found["fish 1000"], 50), arenas_of(found["fish 10"], 50)) == (4, 50)


def test_actions_come_late() -> None:
    turn = iter(range(5))
    late = delayed(lambda obs: torch.full((1,), next(turn)), 2)
    assert [int(late(torch.zeros(1, 11))) for _ in range(5)] == [HOLD, HOLD, 0, 1, 2]


def test_a_cell_tells_survival_and_where_asked_how_they_swam() -> None:
    cell = Cell("delay", 1, SEAS["pursuit"], 1)
    told = measure(cell, lambda: scripted("dodge"), [1, 2], "cpu", watched=True)
    assert len(told["survival"]) == 2 and set(told["schooling"]) == {"polarisation", "milling", "nearest"}
    assert set(measure(cell, lambda: scripted("hold"), [1], "cpu", watched=False)) == {"survival"}
