"""The learner in the vector market: greedy and untrained it is the rule, and its notes are what PPO needs."""

from __future__ import annotations

import torch

from marlab.market.online.net import AroundRule
from marlab.market.online.player import Player, SharedRule
from marlab.market.rules import around
from marlab.market.rules.outlook import outlook_size
from marlab.market.vector.builtin import Seated, play
from marlab.market.vector.market import Market
from marlab.market.vector.rule_w import RuleW
from tests.market.beliefs_cases import random_observer
from tests.market.online_cases import ground


def test_untrained_and_greedy_it_is_the_rule() -> None:
    trainer, there = ground(torch.float64)
    balances = []
    for learner in (True, False):
        market = Market(there.market.setup)
        rule, generator = RuleW(market), torch.Generator().manual_seed(0)
        mine = Player(market, rule, there.kind == 1, trainer.net, None) if learner else SharedRule(rule)
        others, asked = trainer.pool.policies(market, rule, there.kind, trainer.net, generator)
        play(market, Seated(market, asked, {-1: rule, 1: mine, **others}, generator), days=2)
        balances.append(market.balance)
    assert torch.equal(*balances)


def test_it_sees_who_its_partners_may_be() -> None:
    _, there = ground(torch.float64)
    market, observer = Market(there.market.setup), random_observer(2)
    net = AroundRule((8,), 8, 3.0, torch.Generator().manual_seed(0), observer)
    seen: list[torch.Tensor] = []

    class Notes:
        def add(self, market: Market, seats: torch.Tensor, x: torch.Tensor, chosen: object, logp: object) -> None:
            seen.append(x[..., around.INPUTS :])

    generator, rule = torch.Generator().manual_seed(0), RuleW(market)
    mine = Player(market, rule, there.kind == 1, net, generator, Notes())  # type: ignore[arg-type]
    kind = torch.where(there.kind == 1, 1, 0)
    play(market, Seated(market, kind, {-1: rule, 1: mine}, generator), days=2)
    blocks = torch.cat([x.flatten(0, 1) for x in seen])
    assert blocks.shape[1] == outlook_size(observer) == 5
    there_now = blocks[blocks[:, :3].sum(1) > 0]
    torch.testing.assert_close(there_now[:, :3].sum(1), torch.ones(len(there_now)))
    assert float(there_now[:, 0].std()) > 0.01 and bool((blocks >= 0).all()) and bool((blocks <= 1).all())
    assert net.plain().observer is observer
