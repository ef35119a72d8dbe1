"""Beliefs in play: the same as in the vector market, when the same negotiations are watched."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from marlab.market.agent.agent import LitaAgentHRL
from marlab.market.agent.beliefs import BeliefBook, answers_of, last_answer
from marlab.market.agent.threads import Thread
from marlab.market.logs.worldlog import ACCEPT, END
from marlab.market.rules.beliefs import Observer, save_observer
from marlab.market.simulator.evidence import Recording, ShownWorld, config_of, names_of
from marlab.market.simulator.worlds import WorldSpec, playing
from marlab.market.vector.beliefs import Beliefs
from marlab.market.vector.market import Market
from marlab.market.vector.replay import Recorded, watch_moves
from tests.market.beliefs_cases import random_observer
from tests.market.days import a_day

DAYS = 6
OURS = 'marlab.market.agent.agent:LitaAgentHRL(mode="heuristic", observer="{}")'
PROCESSES = (0, 0, 1, 1, 2, 2)


class _Mornings:
    """A witness that keeps the beliefs of every morning."""

    def __init__(self, market: Market, observer: Observer) -> None:
        self._beliefs = Beliefs(market, observer)
        self.found: list[torch.Tensor] = []

    def open(self, market: Market) -> None:
        self._beliefs.open(market)
        self.found.append(self._beliefs.morning.clone())

    def before(self, market: Market, moves: object, silent: object) -> None:
        self._beliefs.hear(market)

    def close(self, market: Market) -> None:
        self._beliefs.close(market)


def _played(path: Path) -> tuple[Recorded, dict[str, list[dict[str, np.ndarray]]]]:
    """A real world with our agent in four seats, and what these believed on every morning about whom."""
    agents = tuple(OURS.format(path) if level < 2 else "SyncRandomStdAgent" for level in PROCESSES)
    spec = WorldSpec("beliefs", 5, 6, DAYS, PROCESSES, agents, (True,) * len(agents))
    believed: dict[str, list[dict[str, np.ndarray]]] = {}
    begin = BeliefBook.new_day

    def noted(book: BeliefBook) -> None:
        begin(book)
        seen.append({name: value.copy() for name, value in book._known.items()})

    with playing(spec, ShownWorld) as world, pytest.MonkeyPatch.context() as patch:
        config = config_of(world)
        world.recording = Recording(world, spec)
        patch.setattr(BeliefBook, "new_day", noted)
        before = LitaAgentHRL.before_step

        def step(agent: LitaAgentHRL) -> None:
            nonlocal seen
            seen = believed.setdefault(str(agent.id), [])
            before(agent)

        seen: list[dict[str, np.ndarray]] = []
        patch.setattr(LitaAgentHRL, "before_step", step)
        world.run()
        log = world.recording.log(world)
        names = names_of(world)
        tables = {name: log.tables[name] for name in ("contracts", "negotiations", "decisions", "offers")}
        none = np.zeros(len(names))
        mornings = np.zeros((DAYS, len(names), 1))
        recorded = Recorded(spec.world_id, config, True, tables, none, none, none, none, none, mornings)
        assert all(world.agents[name].adapted_object.counts["exceptions"] == 0 for name in believed)
    return recorded, {name: believed[name] for name in names if name in believed}


def test_play_and_the_vector_market_believe_the_same(tmp_path: Path) -> None:
    observer = random_observer(3)
    save_observer(tmp_path / "observer.npz", observer)
    recorded, believed = _played(tmp_path / "observer.npz")
    seen: list[_Mornings] = []
    watch_moves([recorded], lambda market: seen.append(_Mornings(market, observer)) or seen[-1])  # type: ignore[func-returns-value]
    names = sorted(believed)
    compared = moved = 0
    for name in names:
        level, place = PROCESSES[int(name[:2])], int(name[:2]) % 2
        for day, known in enumerate(believed[name]):
            for partner, belief in known.items():
                other, at = PROCESSES[int(partner[:2])], int(partner[:2]) % 2
                k, caller = min(level, other), level % 2 == 0  # levels 2 and 0 call
                c, r = (place, at) if caller else (at, place)
                there = seen[0].found[day][0 if caller else 1, 0, k, c, r]
                np.testing.assert_allclose(belief, there, atol=2e-3, err_msg=f"{name} about {partner} on day {day}")
                compared, moved = compared + 1, moved + int(np.ptp(belief) > 0.1)
    assert compared >= 40 and moved >= 30


def test_an_answer_is_told_with_what_came_before_it() -> None:
    state = a_day(input_product=0, output_product=1, n_products=3, day=2)  # sells to the last level, which calls
    low, high = float(state.sell_price_min), float(state.sell_price_max)
    thread = Thread("buyer", True, [(5, low, 1, False), (3, high, 0, True), (4, high, 1, False)])
    first, second = answers_of(thread, state)
    assert first == (0, 0, 0, 0, 0, 0, 0, 1, 5, 0, 1) and second == (1, 3, 1, 0, 5, 0, 1, 1, 4, 1, 1)
    thread.proposed = (2, 2, int(low))
    assert last_answer(thread, 2, state) == [(2, 2, 0, 0, 4, 1, 1, ACCEPT, 0, 0, 0)]
    assert last_answer(thread, 0, state) == [(2, 2, 0, 0, 4, 1, 1, END, 0, 0, 0)]
    assert last_answer(Thread("buyer", True), 0, state) == [(0, 0, 0, 0, 0, 0, 0, END, 0, 0, 0)]
    assert last_answer(Thread("seller", False), 0, a_day(n_products=3)) == []  # I should have opened
