"""The learner in the vector market: greedy and untrained it is the rule, and its notes are what PPO needs."""

from __future__ import annotations

import torch

from marlab.market.online.player import Player, SharedRule
from marlab.market.vector.builtin import Seated, play
from marlab.market.vector.market import Market
from marlab.market.vector.rule_w import RuleW
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
