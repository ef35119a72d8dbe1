"""Which of our agents sell in the vector market, and as what."""

from __future__ import annotations

import pytest
import torch

from marlab.lab.errors import UserError
from marlab.market.fidelity.plan import SELLERS
from marlab.market.fidelity.sellers import VARIANTS, is_rule, population, seat_sellers, settings_of
from marlab.market.rules.bargain import RuleOptions
from marlab.market.simulator.experts import split_alias
from marlab.market.vector.builtin import Seated, play
from marlab.market.vector.clones import load
from marlab.market.vector.market import Market
from marlab.market.vector.rule_w import RuleW
from marlab.market.vector.setup import make_setup
from tests.market.vector_worlds import small_config

pytest.importorskip("scml")


def market(worlds: int = 1) -> Market:
    days = 4
    config = small_config((2, 2), days, supply_units=[[9] * days] * 2, supply_price=[[10] * days] * 2,
                          demand_units=[[6] * days] * 2, demand_price=[[30] * days] * 2)  # fmt: skip
    return Market(make_setup(config.take([0] * worlds), torch.float64))


def test_rules_are_told_from_other_agents() -> None:
    agents = {split_alias(seller)[0]: settings_of(split_alias(seller)[1]) for seller in SELLERS}
    assert [name for name, settings in agents.items() if is_rule(settings)] == [
        "rule",
        "no-waiting",
        "lowest-price",
        "highest-price",
        "lots-of-1",
    ]
    with pytest.raises(UserError, match="cannot sell"):
        settings_of("RandomStdAgent")


@pytest.mark.long
def test_seats_with_options_of_their_own_play_as_the_rule_with_these_options() -> None:
    options = [RuleOptions(), RuleOptions(lot=1, price="highest"), RuleOptions(opening_lots=(2,), hold=0)]
    both = market(len(options))
    number = torch.arange(len(options))[:, None, None].expand(both.setup.exists.shape)
    rules = RuleW(both)
    rules.vary(options, number)
    play(both, Seated(both, torch.ones_like(both.setup.lines), {1: rules}, None))
    for world, own in enumerate(options):
        alone = market()
        play(alone, Seated(alone, torch.ones_like(alone.setup.lines), {1: RuleW(alone, own)}, None))
        assert torch.equal(both.balance[world], alone.balance[0])


def test_everybody_has_a_place() -> None:
    one = market()
    names = ["PenguinAgent", "SyncRandomStdAgent", "RandomStdAgent"]
    who = torch.tensor([[[0, -1], [1, 2]]])
    seated = population(load(), one, names, who, torch.Generator().manual_seed(0))
    agents = [settings_of("LitaAgentHRL(mode=neural)"), settings_of("LitaAgentHRL(mode=heuristic)")]
    seated = seat_sellers(one, seated, agents, torch.where(who < 0, 1, -1))
    assert seated.kind[0, 0, 1] == VARIANTS and set(seated.policies) == {1, 3, VARIANTS}
    play(one, seated, days=1)


def test_a_network_around_the_rule_that_has_learnt_nothing_sells_as_the_rule() -> None:
    agents = [settings_of("LitaAgentHRL(mode=heuristic)"), settings_of("LitaAgentHRL(mode=learned, weights=untrained)")]
    both = market(2)
    seller = torch.tensor([0, 1])[:, None, None].expand(both.setup.exists.shape)
    nobody = Seated(both, torch.zeros_like(both.setup.lines), {}, torch.Generator())
    play(both, seat_sellers(both, nobody, agents, seller), days=2)
    assert torch.equal(both.balance[0], both.balance[1]) and not torch.equal(both.balance[0], both.setup.balance[0])
