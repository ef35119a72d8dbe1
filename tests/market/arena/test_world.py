"""What is measured of a world: places, neighbours, and the time and crashes of an agent's own code."""

from __future__ import annotations

import pytest

pytest.importorskip("scml")
from marlab.market.arena.plan import position
from marlab.market.arena.world import Clock, downstream
from marlab.market.simulator.worlds import WorldSpec

SPEC = WorldSpec(
    "w", 1, 2, 9, (0, 0, 1, 1, 2), ("a:Mine", "GreedyStdAgent", "RandomStdAgent", "SyncRandomStdAgent", "a:Mine"),
    (False,) * 5,
)  # fmt: skip


def test_positions_and_who_buys_from_them() -> None:
    assert [position(level, 3) for level in range(3)] == ["first", "middle", "last"]
    assert position(1, 2) == "last"
    assert [downstream(SPEC, level) for level in range(3)] == ["RS", "-", "market"]


class Agent:
    """Calls one of its own callbacks from another, and fails in two of them."""

    counts = {"decisions": 3, "unsafe": 0}  # noqa: RUF012  as an agent's report looks
    seconds = [0.001, 0.003]  # noqa: RUF012

    def init(self) -> None:
        raise ValueError("no weights")

    def propose(self) -> int:
        return self.respond() + 1

    def respond(self) -> int:
        return 1

    def counter_all(self) -> None:
        raise KeyError("partner")


def test_a_clock_counts_outermost_calls_and_keeps_crashes_of_the_start() -> None:
    agent = Agent()
    clock = Clock(agent)
    assert agent.propose() == 2 and clock.cpu_s >= 0
    for call, error in ((agent.init, ValueError), (agent.counter_all, KeyError)):
        with pytest.raises(error):
            call()
    report = clock.report()
    assert report["crashes"] == ["init raised ValueError: no weights"]  # negotiations are the simulator's to count
    assert (report["own_decisions"], report["own_exceptions"]) == (3, 0)
    assert report["ms_50"] == 2.0 and report["ms_95"] == 2.9
