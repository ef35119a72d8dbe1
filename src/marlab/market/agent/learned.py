"""The decider that learnt online: rule W with a small network's changes in selling threads (`rules.around`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from marlab.market.agent.decide import Intentions, RuleW
from marlab.market.agent.threads import Situation
from marlab.market.logs.daystate import Array
from marlab.market.networks.around import AroundNet
from marlab.market.rules import around
from marlab.market.rules.bargain import RuleOptions
from marlab.market.rules.l1 import Action, issue_of


class Learned:
    """Purchases are the rule's; in selling threads the network may choose otherwise."""

    def __init__(self, net: AroundNet, options: RuleOptions) -> None:
        self._net, self._options, self._rule = net, options, RuleW(options)

    def __call__(self, at: Situation, alpha: Array) -> Intentions:
        """Look at a round once."""
        rule = self._rule(at, alpha)
        if True not in rule.wishes:
            return rule
        turn = self.turn(at, alpha)
        place = {int(i): k for k, i in enumerate(at.of_side(True))}

        def explain(i: int, no_room: bool) -> dict[str, Any]:
            told = rule.explain(i, no_room)
            if i in place:
                told["chosen"] = turn.chosen()[0][0, place[i]].tolist()
            return told

        return Intentions(rule.wishes | {True: turn.wishes}, explain, revise=turn)

    def turn(self, at: Situation, alpha: Array) -> around.Turn:
        """What the network chooses when the turn of each selling thread comes."""
        sale, x = self.looked(at, alpha)
        if self._net.order:
            sale = around.reordered(sale, around.order_keys(sale, self._net.scores(x)))
        return around.Turn(sale, self._net(x), self._net.freedom)

    def looked(self, at: Situation, alpha: Array) -> tuple[around.Sale, Array]:
        """The rule's view of the selling threads, and the network's inputs [1, K, D]."""
        threads, issue = at.sides[True], issue_of(at.batch, True)
        sale = around.look(at.batch, at.batch_caps, threads, issue, at.part(alpha, True), self._options)
        partners = around.partner_inputs(threads.records, at.batch.day)
        return sale, around.inputs(sale, last_offers(at), partners)


def last_offers(at: Situation) -> Action:
    """My last offers of the day in the selling threads, each [1, K]; nan without one."""
    rows = []
    for i in at.of_side(True):
        mine = [row[:3] for row in at.threads[i].history if row[3]]
        rows.append(mine[-1] if mine else (np.nan,) * 3)
    return Action(*np.array(rows, np.float64).reshape(1, -1, 3).transpose(2, 0, 1))
