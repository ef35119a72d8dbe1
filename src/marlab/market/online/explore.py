"""Days that are lived through to learn from: greedy play in which a few choices are drawn at random.

What such a choice brought, beside what the usual one would have, is what `improve` learns. Few are drawn, so that a
day is nearly what greedy play makes of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from marlab.market.online.ground_vector import Ground
from marlab.market.online.player import Player
from marlab.market.rules import around

Tensor = Any
CHANCES = (0.16, 0.10, 0.08, 0.10)
"""How often a thread's operator, lot, price and day are drawn. Operators are rarely open, so more of them are."""
SURE = 1e6
"""Larger than any logit: what is drawn wins."""
FARTHEST = 6.0
"""Inputs of a choice are kept in half precision, within this."""


class Explorer(Player):
    """A network's greedy play; every head of every thread is drawn at random now and then."""

    def noise(self, logits: Tensor) -> Tensor:
        """[n, K, C] what makes an entry win, in the heads whose turn it is to be drawn."""
        device = logits.device
        heads = torch.rand((*logits.shape[:2], len(CHANCES)), generator=self.generator, device=device)
        turn = heads < torch.tensor(CHANCES, device=device)
        sizes = torch.tensor(around.HEADS, device=device)
        turn = turn.repeat_interleave(sizes, dim=2, output_size=around.CHOICES)
        entries = torch.rand(logits.shape, generator=self.generator, device=device)
        return torch.where(turn, SURE * entries, 0.0)


class Lived(NamedTuple):
    """Days of seats, and the choices of them. Letters: D days, N seats, M choices, F inputs of a morning."""

    morning: Tensor  # [D, N, F], half: what was known
    earned: Tensor  # [D, N] in shares of the opening balance
    ended: Tensor  # [D, N], bool: the world was over after this day
    day: Tensor  # [M]
    seat: Tensor  # [M]
    x: Tensor  # [M, inputs], half
    choices: Tensor  # [M, 4], int8
    rest: Tensor  # [M] what the seat earned from this round to the end of the day
    before: Tensor  # [M] what it had earned until then


def live(ground: Ground, days: int) -> Lived:
    """Play days of a ground whose learner explores."""
    mornings, earned, ended, parts = [], [], [], []
    for day in range(days):
        mornings.append(morning_inputs(ground).half())
        rows, rewards = ground.play(1)
        own = rewards.own.sum(-1)  # [20, N]
        rest = own.flip(0).cumsum(0).flip(0) + rewards.evening[0]
        place = rows.step, rows.seat
        parts.append(
            (
                torch.full_like(rows.seat, day), rows.seat, rows.x.clamp(-FARTHEST, FARTHEST).half(),
                rows.choices.to(torch.int8), rest[place].float(), (own.cumsum(0) - own)[place].float(),
            )
        )  # fmt: skip
        earned.append(own.sum(0) + rewards.evening[0])
        ended.append(rewards.ended[0])
    return Lived(torch.stack(mornings), torch.stack(earned), torch.stack(ended), *map(torch.cat, zip(*parts)))


def morning_inputs(ground: Ground) -> Tensor:
    """[N, F] what a value of the day may know: the factory's books, its partners' records, and who the others are."""
    state: Any
    state, known = ground.opened()
    room: Any = torch.clamp(state.n_lines[:, None] - state.q_out, min=0)
    signed = [torch.clamp(units[:, : around.SLOTS] / 10, max=3) for units in (state.q_out, state.q_in)]
    there = (known[..., :1] > 0).to(known.dtype)
    partners = (known * there).sum(1) / there.sum(1).clamp(min=1)
    opening = state.initial_balance.clamp(min=1)
    more = torch.stack(
        [
            state.price_out / state.price_in.clamp(min=1), state.pay.sum(-1) / opening, state.receive.sum(-1) / opening,
            100 * state.price_out / opening, state.production_cost / state.price_out.clamp(min=1),
            state.q_out.sum(-1) / 50, state.q_in.sum(-1) / 50, state.needed_sales / 10, state.needed_supplies / 10,
        ], -1,
    )  # fmt: skip
    kinds = ground.pool.kinds
    parts = [around.day_inputs(state, room), *signed, partners, more, ground.others()[:, 0, kinds:]]
    return torch.nan_to_num(torch.cat([part.float() for part in parts], -1)).clamp(-5, 5)
