"""The warm start of PPO: networks learn from offline data what rule-based players do and earn, before the first game.

It is the help that planning agents get: values learn from everybody, policies from players who caught something.
Letters: R rows, D width of an observation, A actions.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from marlab.hunt.data.dataset import Dataset
from marlab.hunt.game.build import restore
from marlab.hunt.game.config import REWARD_SCALE
from marlab.hunt.game.rows import ways
from marlab.hunt.ppo.network import PlayerNet
from marlab.lab.ppo.choices import apply_mask

BATCH = 1024
LEARNING_RATE = 2e-3
"""Adam step size at the start; it falls to 0."""


class Lessons(NamedTuple):
    """What offline rows teach."""

    obs: Tensor  # [R, D]
    legal: Tensor  # [R, A] bool
    action: Tensor  # [R] int64
    won: Tensor  # [R] bool: the row's player caught something in its episode
    value: Tensor  # [R] its discounted, scaled reward from here on


def lessons(data: Dataset, gamma: float, paths: bool, device: torch.device) -> Lessons:
    """All training rows as PPO's networks see them."""
    part = data.part("train")
    rows = part.rows
    time = (rows.t / data.game.final_time).unsqueeze(1)
    obs = [rows.mask, rows.actions_prev, rows.obs.flatten(1), time, rows.alive]
    if paths:
        me = torch.zeros(1, dtype=torch.int64)
        obs.append(ways(*restore(data.game, rows.obs, rows.t), me).squeeze(1))
    last = (part.offsets[1:] - 1).repeat_interleave(part.offsets.diff())  # [R] the last row of each row's sequence
    paid = rows.r[last]
    value = paid * REWARD_SCALE * gamma ** (rows.steps - 1 - rows.t)
    seen = torch.cat([field.float() for field in obs], 1)
    return Lessons(*(x.to(device) for x in (seen, rows.mask, rows.a, paid > 0, value.float())))


def warm_start(net: PlayerNet, taught: Lessons, updates: int, generator: torch.Generator) -> float:
    """Teach one network; returns the last batch's cross-entropy of the winners' actions."""
    optimiser = torch.optim.Adam(net.parameters(), lr=LEARNING_RATE)
    loss = torch.zeros(())
    for update in range(updates):
        for group in optimiser.param_groups:
            group["lr"] = LEARNING_RATE * (1 - update / updates)
        place = torch.randint(len(taught.action), (BATCH,), generator=generator, device=taught.obs.device)
        obs, legal, action, won, value = (field[place] for field in taught)
        logits = apply_mask(net.logits(obs), legal)
        each = nn.functional.cross_entropy(logits, action, reduction="none")
        loss = (each * won).sum() / won.sum().clamp_min(1)
        optimiser.zero_grad()
        (loss + nn.functional.mse_loss(net.value(obs), value)).backward()
        optimiser.step()
    return float(loss.detach())
