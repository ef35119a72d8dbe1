"""L2, the manager: once a day it says how much to buy and sell, at what price, in four buckets of delivery days.

A goal is 16 numbers, bucket by bucket (Q_buy, P_buy, Q_sell, P_sell), in units and money per unit.
Letters: B batch, H + 1 days of a plan.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Normal
from torch.nn import functional

from marlab.lab.errors import UserError
from marlab.market.networks.forward import L2_KIND, OPEN_NEEDS, SPOT, SPOT_SHARE
from marlab.market.rules import goals
from marlab.market.rules.features import PRICE
from marlab.market.rules.partners import NEEDS

KIND = L2_KIND
"""Marks a checkpoint that holds an L2 network."""
LOG_STD_RANGE = (-20.0, 2.0)


class HorizonManagerPPO(nn.Module):
    """The L2 network: a convolution over the days of the plan, the factory's numbers and its role.

    `positive_q` sends the quantities through softplus: a quantity below zero means nothing, and a loss on clamped
    quantities would neither cost nor correct it. `spot_prices` learns prices as differences from what a goal asks when
    nothing else is known (0.95 of the trading price to buy, 1.05 to sell), and `gap_quantities` learns quantities as
    what comes on top of the open needs, which the extra features tell. The options are stored in the checkpoint.
    """

    def __init__(
        self, horizon: int = 40, n_buckets: int = 4, d_static: int = 12, d_temporal: int = 10, d_role: int = 16,
        positive_q: bool = True, spot_prices: bool = True, gap_quantities: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.options: dict[str, int | bool] = {
            "horizon": horizon, "n_buckets": n_buckets, "d_static": d_static, "d_temporal": d_temporal,
            "d_role": d_role, "positive_q": positive_q, "spot_prices": spot_prices,
            "gap_quantities": gap_quantities,
        }  # fmt: skip
        self.data: dict[str, Any] = {}  # options of the samples it learnt from; filled by `weights.load_network`
        goal = 4 * n_buckets
        self.positive_q, self.spot_prices, self.gap_quantities = positive_q, spot_prices, gap_quantities
        # days are the width of an image of height one: with channels last this is twice as fast on a CPU as Conv1d
        self.temporal = nn.Sequential(
            nn.Conv2d(d_temporal, 32, (1, 3), padding=(0, 1)),
            nn.ReLU(inplace=True),
            nn.Conv2d(32, 64, (1, 7), padding=(0, 3)),
            nn.ReLU(inplace=True),
        )
        self.static = nn.Sequential(nn.Linear(d_static, 32), nn.ReLU())
        self.role = nn.Sequential(nn.Linear(2, d_role), nn.ReLU())
        self.trunk = nn.Sequential(nn.Linear(64 + 32 + d_role, 128), nn.ReLU())
        self.mean = nn.Linear(128, goal)
        self.log_std = nn.Linear(128, goal)
        self.value = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x_static: Tensor, x_temporal: Tensor, x_role: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """[B, 12], [B, H+1, 10], [B, 2] -> mean of the goal [B, 16], its log standard deviation [B, 16], value [B]."""
        image = x_temporal.unsqueeze(1).permute(0, 3, 1, 2)  # [B, 10, 1, H+1], channels last in memory
        days = self.temporal(image).amax((2, 3))  # [B, 64]
        seen = self.trunk(torch.cat([days, self.static(x_static), self.role(x_role)], 1))
        mean = self.mean(seen)
        quantity, price = mean.unflatten(1, (-1, 2)).unbind(2)  # quantities and prices take turns: [B, 8] each
        if self.positive_q:
            quantity = functional.softplus(quantity)
        if self.gap_quantities:
            needs = x_static[:, OPEN_NEEDS] * NEEDS  # [B, 2]
            share = x_static.new_tensor(goals.GAP * goals.SPREAD)  # [4]
            quantity = quantity + (share[:, None] * needs[:, None, :]).flatten(1)
        if self.spot_prices:
            spot = x_static[:, SPOT] * PRICE * x_static.new_tensor(SPOT_SHARE)  # [B, 2]
            price = price + spot.repeat(1, price.shape[1] // 2)
        mean = torch.stack([quantity, price], 2).flatten(1)
        return mean, self.log_std(seen).clamp(*LOG_STD_RANGE), self.value(seen).squeeze(1)

    def sample_action(
        self,
        x_static: Tensor,
        x_temporal: Tensor,
        x_role: Tensor,
        deterministic: bool = False,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """A goal [B, 16] (the mean if `deterministic`), its log-probability [B] and the value [B]."""
        mean, log_std, value = self(x_static, x_temporal, x_role)
        goal = mean
        if not deterministic:
            noise = torch.randn(mean.shape, generator=generator, device=mean.device, dtype=mean.dtype)
            goal = mean + log_std.exp() * noise
        return goal, Normal(mean, log_std.exp()).log_prob(goal).sum(1), value

    def evaluate_actions(
        self, x_static: Tensor, x_temporal: Tensor, x_role: Tensor, goal: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probability of given goals [B], entropy [B], value [B]."""
        mean, log_std, value = self(x_static, x_temporal, x_role)
        normal = Normal(mean, log_std.exp())
        return normal.log_prob(goal).sum(1), normal.entropy().sum(1), value


def find_manager(place: Path) -> Path:
    """The L2 weights meant by a file or a folder: the file; l2_bc.pt; the newest epoch's weights or checkpoint."""
    if place.is_file():
        return place
    if not place.is_dir():
        raise UserError(f"There is no L2 model at {place}; give a file such as l2_bc.pt or the folder that holds it.")
    for folder in (place, place / "checkpoints"):
        final = folder / "l2_bc.pt"
        if final.is_file():
            return final
        for ending in ("", ".ckpt"):
            pattern = re.compile(rf"l2_bc_epoch(\d+){re.escape(ending)}\.pt")
            epochs = {int(m[1]): p for p in folder.glob("l2_bc_epoch*") if (m := pattern.fullmatch(p.name))}
            if epochs:
                return epochs[max(epochs)]
    raise UserError(f"{place} holds no L2 model: expected l2_bc.pt or l2_bc_epochN.pt in it or in its checkpoints/.")
