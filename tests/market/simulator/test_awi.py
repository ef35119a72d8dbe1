"""Reading a morning from the simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from marlab.market.logs.daystate import DayState

pytest.importorskip("scml")
from marlab.market.simulator.awi import Reader, reports_of
from marlab.market.simulator.worlds import WorldSpec, make_world, playing
from tests.market.parity_agent import ParityAgent

DAYS = 9
Morning = tuple[DayState, dict[str, Any]]


def spec_of(agent: str) -> WorldSpec:
    """Two factories on each of three levels, the first of each level as given."""
    others = "RandomStdAgent"
    return WorldSpec("awi", 4, 7, DAYS, (0, 0, 1, 1, 2, 2), (agent, others) * 3, (False,) * 6)


class Without:
    """An AWI that lacks one attribute, and notes which ones it is asked for."""

    def __init__(self, awi: Any, missing: str = "") -> None:
        self._awi, self._missing, self.asked = awi, missing, set[str]()

    def __getattr__(self, name: str) -> Any:
        if name == self._missing:
            raise AttributeError(f"no {name}", name=name, obj=self)
        self.asked.add(name)
        return getattr(self._awi, name)


class Curious(ParityAgent):
    """Compares what the reader says with what the AWI says, every morning."""

    mornings: ClassVar[list[Morning]] = []

    def before_step(self) -> None:
        super().before_step()
        awi = self.awi
        self.mornings.append(
            (
                self.mine.states[-1],
                {
                    "id": self.id,
                    "score": awi.current_score,
                    "balance": awi.current_balance,
                    "inventory": awi.current_inventory,
                    "supplies": [awi.total_supplies_at(awi.current_step + k) for k in range(5)],
                    "sales": [awi.total_sales_at(awi.current_step + k) for k in range(5)],
                    "needs": (awi.needed_supplies, awi.needed_sales),
                    "exogenous": awi.current_exogenous_input_quantity + awi.current_exogenous_output_quantity,
                    "issues": awi.current_output_issues if not awi.is_last_level else awi.current_input_issues,
                    "level": awi.level,
                },
            )
        )


class Blind(ParityAgent):
    """Lives in a simulator that does not tell it its balance."""

    @property
    def awi(self) -> Any:
        return Without(super().awi, "current_balance")


@pytest.fixture(scope="module")
def mornings() -> list[Morning]:
    Curious.mornings.clear()
    with playing(spec_of(f"{__name__}:Curious")) as world:
        world.run()
        assert all(not found for found in world.agent_exceptions.values())
    return Curious.mornings


def test_a_morning_is_what_the_awi_says(mornings: list[Morning]) -> None:
    assert len(mornings) == 3 * DAYS
    assert any(sum(told["supplies"]) for _, told in mornings) and any(sum(told["sales"]) for _, told in mornings)
    for state, told in mornings:
        assert state.balance == told["balance"]
        assert state.score == pytest.approx(told["score"])
        assert (state.inventory_input, state.inventory_output) == told["inventory"]
        assert state.q_in[:5].tolist() == told["supplies"]
        assert state.q_out[:5].tolist() == told["sales"]
        assert (state.needed_supplies, state.needed_sales) == told["needs"]
        assert state.input_product == told["level"]
        prefix = "sell" if state.can_sell else "buy"
        quantity, day, price = told["issues"]
        for name, issue in (("quantity", quantity), ("day", day), ("price", price)):
            bounds = getattr(state, f"{prefix}_{name}_min"), getattr(state, f"{prefix}_{name}_max")
            assert bounds == (issue.min_value, issue.max_value)


def test_running_statistics_are_over_the_days_seen(mornings: list[Morning]) -> None:
    for name in {told["id"] for _, told in mornings}:
        days = [(state, told) for state, told in mornings if told["id"] == name]
        seen: list[float] = []
        for state, told in days:
            seen.append(told["exogenous"])
            assert state.initial_balance == days[0][0].balance
            assert state.exogenous_in_mean + state.exogenous_out_mean == pytest.approx(np.mean(seen))
            assert state.exogenous_reach.tolist() == [sum(q >= k for q in seen) for k in range(1, 11)]


def test_every_missing_attribute_is_named() -> None:
    with playing(spec_of("RandomStdAgent")) as world:
        world.step()
        middle = next(agent.awi for agent in world.agents.values() if getattr(agent.awi, "level", None) == 1)
        spy = Without(middle)
        Reader().read(spy)
        assert {"current_balance", "trading_prices", "future_supplies_cost", "needed_sales"} <= spy.asked
        for name in spy.asked:
            with pytest.raises(AttributeError, match=f"does not tell an agent its '{name}'"):
                Reader().read(Without(middle, name))


@pytest.mark.filterwarnings("ignore")  # the simulator warns of itself
def test_an_agent_without_a_balance_raises_in_the_morning(tmp_path: Path) -> None:
    world = make_world(spec_of(f"{__name__}:Blind"), tmp_path, forgiving=False)
    with pytest.raises(AttributeError, match="current_balance"):
        world.run()


def test_reports_are_read_on_their_days() -> None:
    with playing(spec_of("RandomStdAgent")) as world:
        world.run()
        names = set(world.agent_profiles)
        awi = world.agents[next(iter(names))].awi
        found = {day: reports_of(awi, day) for day in range(DAYS)}
    published = [day for day, reports in found.items() if reports]
    assert published and len(published) < DAYS
    for day in published:
        assert names & set(found[day])
        assert all(isinstance(cash, float) for cash in found[day].values())
