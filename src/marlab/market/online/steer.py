"""Steering: the learner and rule W in the same seats of the same worlds of the vector market, one after the other.

One selling seat of every world is played by the one or the other, everybody else stays. The worlds, their opponents and
the seats are fixed by the seed and used for nothing else, so comparisons along a training can be set side by side. The
last word about the best version is spoken on other worlds, because the best of several comparisons is lucky too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from marlab.lab.stats import mean_interval
from marlab.market.online.ground_vector import LEARNER, draw_shapes
from marlab.market.online.player import Player, SharedRule
from marlab.market.online.pool import Pool
from marlab.market.online.settings import OnlineConfig
from marlab.market.vector.builtin import Seated
from marlab.market.vector.generate import generate_like
from marlab.market.vector.market import Market
from marlab.market.vector.rounds import HALVES
from marlab.market.vector.rule_w import RuleW
from marlab.market.vector.seats import CONSUMERS, movers
from marlab.market.vector.setup import make_setup

Tensor = Any
STEERING, HELD_OUT = 7_919, 104_729
"""Set these worlds apart from those that are learnt from, and those of the last word from those that steer."""


@dataclass(frozen=True)
class Outcome:
    """How some seats fared: one value per world."""

    score: Tensor  # [W]
    first: Tensor  # [W], bool: a seat of the first level, else of a middle one
    short: Tensor  # [W] units a day that were sold and not delivered
    sold: Tensor  # [W] units a day
    bankrupt: Tensor  # [W], bool
    left: Tensor  # [W] share of negotiations that the partner ended without a deal

    def state_dict(self) -> dict[str, Tensor]:
        return {name: value.cpu() for name, value in vars(self).items()}


def opposite(pool: Pool) -> Tensor:
    """[kinds] how often each kind is drawn for steering: all the same, without past selves."""
    chances = torch.zeros(pool.kinds, dtype=torch.float64)
    for number in pool.lasting:
        chances[number] = 1.0
    return chances / chances.sum()


def fare(
    config: OnlineConfig,
    pool: Pool,
    net: Any,
    device: torch.device,
    plays: type[Player] = Player,
    which: int = STEERING,
) -> Outcome:
    """Play the worlds with a network's greedy play in the seats, or with the rule (None)."""
    draw = np.random.default_rng([config.seed, which])
    worlds = config.steer_worlds
    shapes = draw_shapes(config, worlds, draw)
    days = np.full(worlds, config.steer_days)
    configs = generate_like(shapes.n_levels, shapes.sizes, days, draw)
    market = Market(make_setup(configs, torch.float32, device))
    generator = torch.Generator(device=device).manual_seed(int(draw.integers(2**62)))
    exists = market.setup.exists.cpu()
    kind = torch.as_tensor(draw.choice(pool.kinds, tuple(exists.shape), p=opposite(pool).numpy()))
    order = torch.as_tensor(draw.random(tuple(exists.shape)))
    order[~exists] = 2.0
    order[:, -1] = 2.0
    seat = order.flatten(1).argmin(1)  # [W]
    kind = kind.flatten(1).scatter(1, seat[:, None], LEARNER).view(exists.shape).to(device)
    rule = RuleW(market, chosen=pool.remembering(kind), quick=True)
    mine = SharedRule(rule) if net is None else plays(market, rule, kind == LEARNER, net, None)
    others, asked = pool.policies(market, rule, kind, net, generator)  # no past selves: there is no network to copy
    seated = Seated(market, asked, {-1: rule, LEARNER: mine, **others}, generator)
    return _played(market, seated, rule.memory.seats.rows(kind == LEARNER))


def _played(market: Market, seated: Seated, rows: Any) -> Outcome:
    """Play to the end and look at the rows, one of each world."""
    short, sold = (torch.zeros(len(rows), device=market.device) for _ in range(2))
    left, talks = torch.zeros_like(short), torch.zeros_like(short)
    calls = torch.zeros(market.levels, dtype=torch.bool, device=market.device)
    calls[movers(market.levels, 0)] = True
    mine_first = calls[rows.level][:, None]
    days = 0
    while bool(market.playing.any()):
        market.open_day()
        seated.open(market)
        opened = rows.gather(market.threads.running)[:, CONSUMERS]
        for _ in range(HALVES):
            market.move(seated(market))
        threads = market.threads
        ended, agreed = (rows.gather(v)[:, CONSUMERS] for v in (threads.ended_half, threads.agreed_units))
        theirs = (ended % 2 == 0) != mine_first
        left += (opened & (ended < HALVES) & (agreed == 0) & theirs).sum(1)
        talks += opened.sum(1)
        sold += (agreed * opened).sum(1)
        seated.close(market)
        evening = market.close_day()
        short += evening.shortfall[rows.seat]
        days += 1
    first = market.setup.first[rows.world, rows.level]
    days = max(days, 1)
    score = market.scores()[rows.seat]
    return Outcome(score, first, short / days, sold / days, market.bankrupt[rows.seat], left / talks.clamp(min=1))


def compared(learner: Outcome, rule: Outcome) -> dict[str, float]:
    """The learner minus the rule, seat by seat, and what warns of harm."""
    difference = (learner.score.cpu() - rule.score.cpu()).double()
    first = learner.first.cpu()
    told: dict[str, float] = {}
    for name, which in (("gain", torch.ones_like(first)), ("gain_first", first), ("gain_middle", ~first)):
        values = difference[which].numpy()
        if len(values) > 1:
            mean, low, high = mean_interval(values.tolist())
            told |= {f"steer/{name}": float(mean), f"steer/{name}_low": float(low), f"steer/{name}_high": float(high)}
    told["steer/error"] = float(difference.std() / max(1, len(difference)) ** 0.5) if len(difference) > 1 else 0.0
    told["steer/score"] = float(learner.score.double().mean())
    told["steer/rule_score"] = float(rule.score.double().mean())
    for name in ("short", "sold", "bankrupt", "left"):
        told[f"steer/{name}"] = float(getattr(learner, name).double().mean())
        told[f"steer/rule_{name}"] = float(getattr(rule, name).double().mean())
    return told
