"""What factories remember: it begins anew with a world, and costs only the seats that ask."""

from __future__ import annotations

import torch

from marlab.market.vector.builtin import Seated, play
from marlab.market.vector.market import Market
from marlab.market.vector.memory import Memory
from marlab.market.vector.rule_w import RuleW
from marlab.market.vector.seats import CONSUMERS, SUPPLIERS
from marlab.market.vector.setup import Setup, make_setup
from tests.market.vector_worlds import small_config


def two_worlds(days: int = 12) -> Setup:
    configs = small_config(
        (2, 2),
        days,
        supply_units=[[9] * days] * 2,
        supply_price=[[10] * days] * 2,
        demand_units=[[6] * days] * 2,
        demand_price=[[30] * days] * 2,
    )
    return make_setup(configs.take([0, 0]), torch.float64)


def test_memory_begins_anew_with_a_world() -> None:
    setup = two_worlds()
    market = Market(setup)
    rule = RuleW(market)
    policy = Seated(market, torch.ones_like(setup.lines), {1: rule}, None)
    play(market, policy, days=2)
    rows = rule.memory.seats.rows(setup.exists)
    assert rule.memory.known(rows.take(rows.level == 0), CONSUMERS).negotiations.sum() > 0
    market.restart(torch.tensor([True, False]), setup)
    play(market, policy, days=2)
    fresh = Market(setup)
    play(fresh, Seated(fresh, torch.ones_like(setup.lines), {1: RuleW(fresh)}, None), days=2)
    assert torch.equal(market.balance[0], fresh.balance[0])


def test_a_rule_that_remembers_for_its_own_seats_plays_the_same() -> None:
    setup = two_worlds()
    kind = torch.zeros_like(setup.lines)
    kind[0, 0, 1] = kind[1, 1, 0] = kind[1, 0, 0] = 1
    ends = []
    for chosen in (None, kind == 1):
        market, generator = Market(setup), torch.Generator().manual_seed(3)
        rule = RuleW(market, chosen=chosen)
        play(market, Seated(market, kind, {1: rule}, generator), days=5)
        ends.append(market.balance)
        kept = len(rule.memory.partners[CONSUMERS].records.units)
        assert kept == (4 if chosen is None else 2)  # two factories of each world sell; of the chosen ones two
    assert torch.equal(*ends)


def test_both_sides_are_remembered_if_asked_for() -> None:
    setup = two_worlds()
    market = Market(setup)
    memory = Memory(market, torch.float64, sides=(SUPPLIERS, CONSUMERS))
    policy = Seated(market, torch.zeros_like(setup.lines), {}, torch.Generator().manual_seed(0))
    for _ in range(3):
        market.open_day()
        memory.open(market)
        for _ in range(40):
            memory.hear(market)
            market.move(policy(market))
        memory.close(market)
        market.close_day()
    rows = memory.seats.rows(setup.exists)
    sellers = memory.known(rows.take(rows.level == 0), CONSUMERS)
    buyers = memory.known(rows.take(rows.level == 1), SUPPLIERS)
    for name in ("negotiations", "agreements", "units"):  # [2 worlds x 2 factories, 2 partners], seen from both sides
        mine, theirs = (getattr(side, name).reshape(2, 2, 2) for side in (sellers, buyers))
        assert torch.equal(mine, theirs.transpose(1, 2)) and mine.sum() > 0
