"""A search over the options of rule W: the cube, and whether it climbs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from marlab.lab.errors import UserError
from marlab.market.fidelity import search
from marlab.market.fidelity.plan import FidelityConfig
from marlab.market.rules.bargain import RuleOptions

pytest.importorskip("scml")


def test_options_and_points_of_the_cube_are_one_to_one() -> None:
    for options in (
        RuleOptions(),
        RuleOptions(0, (1, 12, 10), (0.125, 1.0, 0.0), 10, 0.25, 20, 0.3, False),
    ):
        assert search.options_of(search.point_of(options)) == options
    lowest, highest = (search.options_of(np.full(len(search.RANGES), value)) for value in (-1.0, 2.0))
    assert lowest.opening_days == 0 and not lowest.fill_first and highest.hold == 20 and highest.fill_first
    with pytest.raises(UserError, match="three opening lots"):
        search.point_of(RuleOptions(opening_lots=(7,)))


def test_the_search_climbs_to_better_options(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cmaes")
    played: list[int] = []

    def batch(configs: Any, seats: Any, agents: Any, repeats: int, pack: Any, seed: int, device: Any) -> Any:
        """Waiting until round 5 with small lots of 8 would be best."""
        played.append(len(agents))
        rules = [agent.rule_options() for agent in agents]
        worth = [-abs(rule.hold - 5) / 20 - abs(rule.small_lot - 8) / 10 for rule in rules]
        return np.array(worth)[:, None, None] + np.zeros((len(agents), len(seats), repeats))

    monkeypatch.setattr(search, "play_batch", batch)
    config = FidelityConfig(configs=2)
    nothing: Any = None
    steps = list(search.search(config, nothing, nothing, torch.device("cpu"), 40, 12))
    assert len(steps) == 40 and played == [13] * 40  # the rule plays along
    assert abs(steps[-1].centre.hold - 5) <= 1 and abs(steps[-1].centre.small_lot - 8) <= 1
    assert steps[-1].gain.value == pytest.approx(13 / 20 + 5 / 10, abs=0.11)
    assert list(search.search(config, nothing, nothing, torch.device("cpu"), 40, 12, lambda: True)) == []
