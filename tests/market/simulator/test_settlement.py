"""Settlement from contracts: by hand, and against balances, stocks and prices of real worlds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from marlab.market.simulator.settlement import MONEY, Day, Due, Rates, settle_day

pytest.importorskip("scml")
from marlab.market.simulator.record import RecordedWorld, Recording
from marlab.market.simulator.settlement import Economy, Settlement, economy_of, settle
from marlab.market.simulator.worlds import WorldSpec, playing


def settled(**changes: Any) -> Day:
    """A day of a factory with ten lines that has no contracts, unless `changes` say otherwise."""
    due = {name: changes.get(name, []) for name in Due._fields}
    rates = {"lines": 10, "cost": 2.0, "storage": 0.5, "penalty": 6.0}
    rates |= {name: changes[name] for name in rates if name in changes}
    return settle_day(Due(**due), changes.get("stock", 0), changes.get("balance", 1000.0), Rates(**rates))


def test_a_day_without_contracts_costs_only_storage() -> None:
    today = settled(stock=4)
    assert today.profit == -2.0 and today.stock == 4 and today.produced == 0


def test_stock_is_offered_every_day_and_never_consumed() -> None:
    today = settled(stock=10, sales=[(20.0, 10)])
    assert today.stock == 10 and today.profit == 10 * 20 - 10 * 2


def test_a_day_by_hand() -> None:
    """5 bought, 3 supplied, 2 in stock; 14 owed, 10 lines: the four cheapest sales are not served."""
    sales = [(20.0, 6), (25.0, 4), (18.0, 4)]
    today = settled(purchases=[(11.0, 5)], supply=[(10.0, 3)], stock=2, sales=sales)
    assert today.produced == 10 and today.shortfall == 4 and today.stock == 2  # 8 arrived, 10 were produced
    assert today.revenue == 4 * 25 + 6 * 20 and today.purchases == 55 and today.supply == 30
    assert today.storage == 0 and today.penalty == 24 and today.production == 20
    assert today.profit == 220 - 55 - 30 - 20 - 24


def test_cash_limits_production_but_not_payment() -> None:
    """100 of cash pays 3 units of 10 + 20 with their production; the fourth would need more. All five are paid."""
    today = settled(balance=100.0, cost=20.0, purchases=[(10.0, 5)], sales=[(50.0, 5)])
    assert today.produced == 3 and today.purchases == 50 and today.shortfall == 2 and today.stock == 2
    broke = settled(balance=-1.0, stock=5, sales=[(50.0, 5)])
    assert broke.produced == 0 and broke.penalty == 30


def test_a_balance_of_nothing_is_not_bankrupt() -> None:
    """One supplied unit at 10 a day: opening balances of 20 and 19.5 are 0 and below 0 after the second day."""
    rates = np.zeros((2, 3))
    economy = Economy(
        level=np.zeros(2, np.int64), lines=np.full(2, 10), cost=np.ones(2), balance=np.array([20.0, 19.5]),
        storage=rates, shortfall=rates, catalogue=np.array([10.0, 20.0]),
    )  # fmt: skip
    days, buyer = [0, 0, 1, 1], [0, 1, 0, 1]
    contracts = {
        "seller": np.full(4, -1),
        "buyer": np.array(buyer),
        "product": np.zeros(4, np.int64),
        "quantity": np.ones(4),
        "price": np.full(4, 10.0),
        "delivery": np.array(days),
    }
    found = settle(economy, contracts)
    assert found.balance[-1].tolist() == [0.0, -0.5] and found.bankrupt_on.tolist() == [-1, 1]


def played(agents: tuple[str, ...], levels: int, days: int, **more: Any) -> tuple[Any, Economy, Settlement, list[str]]:
    count = len(agents)
    spec = WorldSpec(
        "w", 3, 4, days, tuple(i * levels // count for i in range(count)), agents, (False,) * count, **more
    )
    with playing(spec, RecordedWorld) as world:
        world.recording = Recording(world, spec)
        world.run()
        log = world.recording.log(world)
        names = [agent["id"] for agent in log.agents]
        economy = economy_of(world, names)
        return world, economy, settle(economy, log.tables["contracts"]), names


@pytest.mark.parametrize(
    ("agents", "levels", "days"),
    [
        (("SyncRandomStdAgent", "RandomStdAgent") * 3, 3, 10),
        (("RandomStdAgent", "GreedyStdAgent", "RandomStdAgent", "RandomStdAgent"), 2, 10),
    ],
)
def test_real_worlds_are_reproduced(agents: tuple[str, ...], levels: int, days: int) -> None:
    world, economy, settled, names = played(agents, levels, days)
    for f, name in enumerate(names):
        balances = [float(v) for v in world.stats[f"balance_{name}"]]
        np.testing.assert_allclose(settled.balance[1:, f], balances, atol=1e-6)
        np.testing.assert_allclose(settled.parts["stock"][-1, f], world._inventory_input[name])
        shares = settled.shares(f)
        parts = shares["revenue"] - sum(shares[name] for name in MONEY[1:])
        assert 1 + parts == pytest.approx(world.scores()[name], abs=1e-6)
        assert (settled.bankrupt_on[f] >= 0) == world.is_bankrupt[name]
        assert settled.bankrupt_on[f] >= 0 or settled.bankrupt_on[f] == -1
    np.testing.assert_allclose(settled.prices[-1], world.trading_prices, atol=1e-6)
    assert settled.parts["produced"].sum() > 20 and len(economy.catalogue) == levels + 1


def test_a_bankruptcy_ends_contracts_of_both_sides() -> None:
    """Poor factories: the balance is made so small that somebody is bankrupt long before the end."""
    spec = WorldSpec("w", 5, 6, 10, (0, 0, 1, 1), ("RandomStdAgent",) * 4, (False,) * 4)
    with playing(spec, RecordedWorld) as world:
        names = [name for name in world.agents if name in world.agent_profiles]
        for name in names:
            world.initial_balances[name] = 300
        world.recording = Recording(world, spec)
        world.run()
        contracts = world.recording.log(world).tables["contracts"]
        settled = settle(economy_of(world, names), contracts)
    assert (settled.bankrupt_on >= 0).any() and not settled.executed[contracts["delivery"] < 10].all()
    for f, name in enumerate(names):
        assert settled.balance[-1, f] == pytest.approx(world.current_balance(name), abs=1e-6)
