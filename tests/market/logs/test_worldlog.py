"""A world as one of its agents saw it."""

from __future__ import annotations

import numpy as np

from marlab.market.logs.worldlog import TABLES
from tests.market.sample_tools import tiny_world


def test_an_agent_sees_its_own_days_decisions_and_contracts() -> None:
    world = tiny_world()
    for index, agent in enumerate(world.agents):
        log = world.agent(index)
        assert (log.agent_id, log.agent_type, log.index) == (agent["id"], agent["type"], index)
        assert len(log.days) == (world.tables["days"]["agent"] == index).sum()
        assert (log.decisions["agent"] == index).all() and (np.diff(log.decisions["seq"]) >= 0).all()
        assert ((log.contracts["seller"] == index) | (log.contracts["buyer"] == index)).all()
        assert log.names == [other["id"] for other in world.agents]
    everything = sum(len(world.agent(i).decisions["seq"]) for i in range(len(world.agents)))
    assert everything == len(world.tables["decisions"]["seq"])


def test_only_tracked_agents_are_handed_out() -> None:
    tracked = [agent["id"] for agent in tiny_world().agents if agent["tracked"]]
    assert [log.agent_id for log in tiny_world().tracked()] == tracked and 0 < len(tracked) < len(tiny_world().agents)


def test_plans_may_look_less_far_ahead() -> None:
    near, far = tiny_world().agent(2, horizon=12).days, tiny_world().agent(2).days
    np.testing.assert_array_equal(near.q_in, far.q_in[:, :13])


def test_every_column_of_a_table_is_as_long_as_the_others() -> None:
    for name, kinds in TABLES.items():
        table = tiny_world().tables[name]
        assert set(table) == set(kinds) and len({len(values) for values in table.values()}) == 1
