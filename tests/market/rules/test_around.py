"""Heads around the rule in the vector market: untrained they are the rule, and what is drawn always fits."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch

from marlab.market.logs.worldlog import ACCEPT, END, REJECT
from marlab.market.rules import around, l1, plan
from marlab.market.rules.l1 import ECONOMIC, Action
from marlab.market.vector.builtin import Seated, play
from marlab.market.vector.generate import generate
from marlab.market.vector.market import Market
from marlab.market.vector.rule_w import RuleW
from marlab.market.vector.seats import CONSUMERS
from marlab.market.vector.setup import make_setup
from marlab.market.vector.sync_random import SyncRandom


class Around(RuleW):
    """Plays by given logits and looks at what comes out."""

    bonus, drawn, freedom = 3.0, False, around.BOUND
    seen: list[tuple[around.Sale, around.Chosen, Any]]
    known: list[Any]

    def sale(self, market, rows, state, caps, threads, issue, alpha):  # type: ignore[no-untyped-def]
        sale = around.look(state, caps, threads, issue, alpha, self.options)
        logits = torch.zeros((*alpha.shape, around.CHOICES), dtype=alpha.dtype) + torch.tensor(around.prior(self.bonus))
        noise = -torch.rand(logits.shape, generator=self.noise).log().neg().log() if self.drawn else None
        chosen = around.serve(sale, ECONOMIC, logits, noise, self.freedom)
        self.seen.append((sale, chosen, logits))
        self.known.append(self.memory.known(rows, CONSUMERS))
        return chosen.answers


@functools.cache
def played(policy: type[RuleW], days: int = 3, drawn: bool = False, bonus: float = 3.0) -> tuple[Market, RuleW]:
    configs = generate(3, np.random.default_rng(1), levels=(2, 3), factories=(3, 4), days=(days, days))
    market = Market(make_setup(configs, torch.float64))
    generator = torch.Generator().manual_seed(0)
    kind = torch.randint(0, 3, market.setup.lines.shape, generator=generator)
    rule = policy(market)
    if isinstance(rule, Around):
        rule.seen, rule.known, rule.drawn, rule.bonus, rule.noise = (
            [],
            [],
            drawn,
            bonus,
            torch.Generator().manual_seed(1),
        )  # type: ignore[attr-defined]
    play(market, Seated(market, kind, {1: rule, 2: SyncRandom(generator)}, generator))
    return market, rule


def test_without_learning_greedy_play_is_the_rule() -> None:
    ours, rule = played(Around)
    assert torch.equal(played(RuleW)[0].balance, ours.balance)
    assert isinstance(rule, Around)
    assert all((chosen.choices == around.AS_RULE).all() for _, chosen, _ in rule.seen)
    free = torch.cat([chosen.free.flatten() for _, chosen, _ in rule.seen])
    assert 50 < free.sum() < len(free)


def test_what_is_drawn_is_open_fits_and_is_done() -> None:
    _, rule = played(Around, drawn=True, bonus=0.0)
    assert isinstance(rule, Around)
    done = {ACCEPT: 0, REJECT: 0}
    for sale, chosen, _ in rule.seen:
        answers, room = chosen.answers, torch.as_tensor(sale.room).clone()
        heads = chosen.mask.split(list(around.HEADS), -1)
        for head, mask in enumerate(heads):
            assert mask.gather(-1, chosen.choices[..., head : head + 1]).all()
        op, lot, price, _ = chosen.choices.unbind(-1)
        assert (answers.op[op == around.OP_ACCEPT] == ACCEPT).all()
        assert (answers.op[op == around.OP_COUNTER] == REJECT).all()
        assert not (op == around.OP_LEAVE).any()  # never offered while there is room
        offers = answers.op == REJECT
        assert offers[lot > 0].all() and offers[price > 0].all()
        lots = torch.tensor([0.0, *around.LOTS], dtype=torch.float64)
        free_day = (lot > 0) & (chosen.choices[..., 3] > 0)  # the learner chose lot and day: nothing is cut
        assert (answers.quantity[free_day] == lots[lot][free_day]).all()
        low, high = sale.issue.price_min[:, None], sale.issue.price_max[:, None]
        assert (answers.price == high)[price == 3].all()
        assert (answers.price == low)[price == 1].all()
        planned = torch.zeros_like(room)
        days = answers.day.long().clamp(0, room.shape[1] - 1)
        planned.scatter_add_(1, days, answers.quantity.to(room.dtype) * (answers.op != END))
        assert (planned <= l1.caps(sale.state, ECONOMIC).sell + 1e-9).all()
        for kind in done:
            done[kind] += int((answers.op == kind).sum())
    assert done[ACCEPT] > 3 and done[REJECT] > 100


class Outright(Around):
    freedom = around.Freedom(outright=True)


def test_who_chooses_outright_never_does_as_the_rule_in_an_offer() -> None:
    _, rule = played(Outright, drawn=True, bonus=0.0)
    assert isinstance(rule, Around)
    offered = 0
    for _, chosen, _ in rule.seen:
        heads = chosen.mask.split(list(around.HEADS), -1)[1:]
        for head, mask in enumerate(heads, 1):
            others = mask[..., 1:].any(-1)
            assert (mask[..., 0] != others).all()  # the one or the others
            assert (chosen.choices[..., head] > 0)[others].all()
        lot, day = chosen.choices[..., 1], chosen.choices[..., 3]
        lots = torch.tensor([0.0, *around.LOTS], dtype=torch.float64)
        both = (lot > 0) & (day > 0)
        assert (chosen.answers.quantity[both] == lots[lot][both]).all()
        offered += int(both.sum())
    assert offered > 100


def test_masks_leave_out_what_would_be_the_rule() -> None:
    _, rule = played(Around, drawn=True, bonus=0.0)
    assert isinstance(rule, Around)
    for sale, chosen, logits in rule.seen:
        greedy = around.serve(sale, ECONOMIC, logits + torch.tensor(around.prior(9.0)))
        first = plan.ordered(sale.wishes, sale.threads)[:, 0]
        rows = torch.arange(len(first))
        changed = (chosen.choices[rows, first] > 0).any(-1)  # the first thread: nobody took room before it
        same = torch.stack(
            [a[rows, first] == b[rows, first] for a, b in zip(chosen.answers[:4], greedy.answers[:4])]
        ).all(0)
        assert not (changed & same).any()


def test_inputs_have_their_sizes_and_stay_small() -> None:
    _, rule = played(Around)
    assert isinstance(rule, Around)
    for (sale, _, _), known in zip(rule.seen[::7], rule.known[::7]):
        nothing = torch.full_like(sale.alpha, float("nan"))
        partners = around.partner_inputs(known, sale.state.day)
        x = around.inputs(sale, Action(nothing, nothing, nothing), partners)
        assert x.shape == (*sale.alpha.shape, around.INPUTS)
        assert x.isfinite().all() and x.abs().max() < 50
