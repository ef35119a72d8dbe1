"""Which worlds are played: any number of them covers all populations in turn."""

from __future__ import annotations

import pytest

from marlab.lab.errors import UserError
from marlab.market.verify.plan import by_level, planned, populations


def test_populations_take_turns_and_shapes_vary() -> None:
    plan = planned(40, (10, 20), 0)
    assert {name for name, _ in plan[: len(populations())]} == set(populations())
    specs = [spec for _, spec in plan]
    assert {spec.n_processes for spec in specs} == {2, 3, 4}
    assert all(10 <= spec.n_steps <= 20 and all(spec.tracked) for spec in specs)
    sizes = {spec.processes.count(level) for spec in specs for level in range(spec.n_processes)}
    assert sizes == set(range(3, 9))


def test_the_same_seed_plans_the_same_worlds() -> None:
    assert planned(5, (10, 20), 3) == planned(5, (10, 20), 3) != planned(5, (10, 20), 4)
    specs = by_level(("A", "B"), 4, 9, 0)
    assert len({spec.market_seed for spec in specs}) == 4 and specs[0].agents == ("A",) * 4 + ("B",) * 4 + ("A",) * 4


def test_populations_can_be_chosen_and_every_world_has_an_id_of_its_own() -> None:
    plan = planned(6, (10, 20), 0, ["Random", "Greedy"])
    assert [name for name, _ in plan] == ["Random", "Greedy"] * 3
    assert {agent for _, spec in plan for agent in spec.agents} == {"RandomStdAgent", "GreedyStdAgent"}
    ids = {spec.world_id for days in ((10, 20), (30, 40)) for _, spec in planned(6, days, 0)}
    assert len(ids) == 12
    with pytest.raises(UserError, match="no population 'nobody'"):
        planned(1, (10, 20), 0, ["nobody"])
