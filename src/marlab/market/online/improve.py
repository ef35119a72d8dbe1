"""One turn of policy improvement: what did the choices that were drawn bring, and where is another one better?

A value of mornings is fitted first: what a seat still earns in its game. Then what a choice brought, the rest of its
day and the value of the next morning, is explained by a baseline of its situation plus a share for every head; "as the
rule" has share 0. Play takes the entry with the largest share, and does as the rule does unless another is better by a
margin. Compared with a gradient step, nothing has to be unlearnt first and all days count at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from marlab.market.online.explore import Lived
from marlab.market.rules import around

GAMMA = 0.99
"""Discount per day."""
LONG = 0.7
"""Mixing of short and long returns, per day."""
TURNS = 3
"""How often the value of mornings is fitted; the first time to games that ended, later to all."""
WIDEST = 6.0
"""What a choice brought counts up to so many standard deviations."""
HELD_BACK = 0.15
"""Share of the seats that are not learnt from: they tell how true the shares are."""
HEADS = ("op", "lot", "price", "day")
STARTS = [sum(around.HEADS[:head]) for head in range(len(around.HEADS))]


@dataclass(frozen=True)
class Fit:
    """How the regressions are done."""

    steps: int = 3000
    batch_size: int = 32_768
    learning_rate: float = 1e-3
    width: int = 256
    """Units of the layers of values and baselines."""


def layers(*sizes: int, generator: torch.Generator) -> nn.Sequential:
    """Linear layers with ReLU between them."""
    found: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        linear = nn.Linear(inputs, outputs)
        with torch.no_grad():
            bound = inputs**-0.5
            for part in (linear.weight, linear.bias):
                part.copy_(torch.rand(part.shape, generator=generator) * 2 * bound - bound)
        found += [linear, nn.ReLU()]
    return nn.Sequential(*found[:-1])


def regress(net: nn.Module, loss_of: Callable[[Tensor], Tensor], rows: int, fit: Fit, draw: torch.Generator) -> float:
    """Adam with a rate that rises and falls; `loss_of` rows [batch]. Returns the loss at the end."""
    optimiser = torch.optim.Adam(net.parameters(), fit.learning_rate)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, fit.learning_rate, total_steps=fit.steps + 1)
    last = 0.0
    for step in range(fit.steps):
        loss = loss_of(torch.randint(rows, (min(fit.batch_size, rows),), generator=draw, device=draw.device))
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        rate.step()
        if step == fit.steps - 1:
            last = float(loss.detach())
    return last


def values(lived: Lived, fit: Fit, draw: torch.Generator) -> tuple[Tensor, Tensor]:
    """[D, N] what a seat still earns from a morning on, as thought, and as it came (mixed with what was thought)."""
    days, seats, size = lived.morning.shape
    flat = lived.morning.reshape(days * seats, size)
    some = flat[:: max(1, len(flat) // 200_000)].float()
    mean, spread = some.mean(0), some.std(0) + 1e-2
    net = layers(size, fit.width, fit.width, 1, generator=torch.Generator().manual_seed(draw.initial_seed())).to(
        flat.device
    )
    thought = torch.zeros(days, seats, device=flat.device)
    came = thought
    for turn in range(TURNS):
        came, known = returns(lived.earned, lived.ended, thought if turn else None)
        rows = known.reshape(-1).nonzero()[:, 0]
        target = (10 * came).reshape(-1).clamp(-15, 15)

        def loss_of(drawn: Tensor, rows: Tensor = rows, target: Tensor = target) -> Tensor:
            at = rows[drawn]
            return (net((flat[at].float() - mean) / spread)[:, 0] - target[at]).pow(2).mean()

        if not len(rows):
            break  # no game ended: a value of 0 everywhere is all that can be said
        regress(net, loss_of, len(rows), fit, draw)
        with torch.no_grad():
            parts = [net((part.float() - mean) / spread)[:, 0] for part in flat.split(1 << 20)]
        thought = torch.cat(parts).view(days, seats) / 10
    return thought, came


def returns(earned: Tensor, ended: Tensor, thought: Tensor | None, long: float = LONG) -> tuple[Tensor, Tensor]:
    """[D, N] what came from a morning on, and where that is known: everywhere with `thought`, else in games that ended.

    After the last day that was seen the value of its own morning stands for that of the next.
    """
    came, known = torch.zeros_like(earned), torch.zeros_like(ended)
    after = torch.zeros_like(earned[0]) if thought is None else thought[-1]
    sure = torch.zeros_like(ended[0]) if thought is None else torch.ones_like(ended[0])
    for day in range(len(earned) - 1, -1, -1):
        came[day] = earned[day] + GAMMA * torch.where(ended[day], 0.0, after)
        known[day] = ended[day] | sure
        sure = known[day]
        after = came[day] if thought is None else long * came[day] + (1 - long) * thought[day]
    return came, known


def brought(lived: Lived, thought: Tensor, came: Tensor) -> Tensor:
    """[M] what the rest of the day and the next mornings brought, beyond what the morning promised."""
    after = torch.cat([LONG * came[1:] + (1 - LONG) * thought[1:], thought[-1:]])
    after = GAMMA * torch.where(lived.ended, 0.0, after)
    place = lived.day, lived.seat
    return lived.rest + after[place] - thought[place]


def shares(net: nn.Module, x: Tensor, choices: Tensor) -> Tensor:
    """[M, 4] the shares of what was chosen; doing as the rule does has 0."""
    starts = torch.tensor(STARTS, device=x.device)
    found: Tensor = net(x).gather(1, choices.long() + starts)
    return found * (choices > 0)


def advantages(
    lived: Lived, hidden: tuple[int, ...], fit: Fit, draw: torch.Generator
) -> tuple[nn.Sequential, dict[str, float]]:  # fmt: skip
    """A network [*, inputs] -> [*, C] of shares, in standard deviations of what choices bring; and how true it is."""
    thought, came = values(lived, fit, draw)
    target = brought(lived, thought, came)
    spread = target.std().clamp(min=1e-9)
    target = (target / spread).clamp(-WIDEST, WIDEST)
    place = lived.day, lived.seat
    hints = torch.stack([(10 * thought[place]).clamp(-5, 5), (20 * lived.before).clamp(-1, 4)], 1)
    fresh = torch.Generator().manual_seed(draw.initial_seed() + 1)
    inputs = lived.x.shape[1]
    net = layers(inputs, *hidden, around.CHOICES, generator=fresh).to(target.device)
    last: Any = net[-1]
    with torch.no_grad():
        last.weight.mul_(0.1)  # begin near to what the rule does
        last.bias.zero_()
    base = layers(inputs + 2, fit.width, fit.width, 1, generator=fresh).to(target.device)
    seats = lived.earned.shape[1]
    held = (torch.rand(seats, generator=draw, device=target.device) < HELD_BACK)[lived.seat]
    rows = (~held).nonzero()[:, 0]

    def left(at: Tensor) -> tuple[Tensor, Tensor]:
        x = lived.x[at].float()
        each = shares(net, x, lived.choices[at])
        return target[at] - base(torch.cat([x, hints[at]], 1))[:, 0] - each.sum(1), each

    def loss_of(drawn: Tensor) -> Tensor:
        return left(rows[drawn])[0].pow(2).mean()

    loss = regress(nn.ModuleList([net, base]), loss_of, len(rows), fit, draw)
    told = {"improve/loss": loss, "improve/spread": float(spread), "improve/choices": float(len(rows))}
    return net, told | _truth(lived, held, left)


def _truth(lived: Lived, held: Tensor, left: Callable[[Tensor], tuple[Tensor, Tensor]]) -> dict[str, float]:
    """By head: the slope of what choices brought on what was thought, in seats not learnt from; 1 is right."""
    sums = torch.zeros(len(HEADS), 2, device=held.device)
    with torch.no_grad():
        for at in held.nonzero()[:, 0].split(1 << 19):
            rest, each = left(at)
            for head in range(len(HEADS)):
                share = each[:, head]
                sums[head] += torch.stack([(share * (rest + share)).sum(), (share * share).sum()])
    slopes = (sums[:, 0] / sums[:, 1].clamp(min=1e-9)).tolist()
    return {f"improve/slope_{name}": slope for name, slope in zip(HEADS, slopes)}


def as_policy(net: nn.Sequential, margin: float, bonus: float) -> list[tuple[Tensor, Tensor]]:
    """Weights and biases of layers whose logits, with the prior of a bonus, play by shares with a margin.

    Shares are stretched so that the bonus of doing as the rule does is worth the margin.
    """
    found = [(part.weight.detach().clone(), part.bias.detach().clone()) for part in net if isinstance(part, nn.Linear)]
    weight, bias = found[-1]
    stretch: Any = torch.full((around.CHOICES,), bonus / margin, device=weight.device)
    stretch[STARTS] = 0.0
    found[-1] = weight * stretch[:, None], bias * stretch
    return found
