"""Advantages for L3: how much better a day went than days like it usually do.

A decision's return is the discounted sum of its factory's daily balance changes from that day on, in units of the
factory's own spread; a small network says what to expect in the morning; the advantage is the difference.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from marlab.lab.errors import UserError
from marlab.lab.runs.rng import Rngs
from marlab.market.samples.dataset import Columns, Samples

EPOCHS, BATCH, LR = 5, 1024, 1e-3
NEAR = 11
"""Days of X_temporal that the baseline looks at: the league delivers within ten."""


def returns(reward: NDArray[np.floating], log: NDArray[np.integer], gamma: float) -> NDArray[np.float64]:
    """[D] discounted sums of rewards from each day to the end of its log; rows of a log are together and in order.

    A reward that is unknown (nan) ends the sums of the days before it: those days get nan too.
    """
    total = np.full(len(reward), np.nan)
    running, previous = 0.0, -1
    for row in range(len(reward) - 1, -1, -1):
        if log[row] != previous:
            running, previous = 0.0, log[row]
        running = reward[row] + gamma * running
        total[row] = running
    return total


def scaled_returns(macro: Columns, gamma: float) -> NDArray[np.float64]:
    """Returns in units of each log's standard deviation of daily rewards: factories differ tenfold in size."""
    log = np.asarray(macro["log"])
    reward = np.asarray(macro["reward"], np.float64)
    known = np.isfinite(reward)
    count = np.maximum(np.bincount(log, known), 1)
    mean = np.bincount(log, np.where(known, reward, 0)) / count
    spread = np.sqrt(np.bincount(log, np.where(known, (reward - mean[log]) ** 2, 0)) / count)
    return returns(reward / np.maximum(spread, 1e-6)[log], log, gamma)


class ReturnBaseline(nn.Module):
    """What return to expect in the morning: [B, 12 + 2 + days left and near slots] -> [B]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x).squeeze(1)


def day_features(macro: Columns) -> NDArray[np.float32]:
    """[D, F] what the baseline sees of a day."""
    near = macro["x_temporal"][:, :NEAR]
    return np.concatenate([macro["x_static"], macro["x_role"], near.reshape(len(near), -1)], 1).astype(np.float32)


def day_advantages(samples: Samples, gamma: float, seed: int) -> NDArray[np.float32]:
    """[D] return minus its expectation, fitted on these days; 0 where the log does not tell the return."""
    macro = samples.macro
    wanted = scaled_returns(macro, gamma)
    known = np.flatnonzero(np.isfinite(wanted))
    if not len(known):
        raise UserError("No sample has a reward, so there are no advantages; leave the phase awr out.")
    rngs = Rngs(seed)
    torch.manual_seed(rngs.draw_seed("awr/baseline"))
    x, y = torch.from_numpy(day_features(macro)), torch.from_numpy(wanted.astype(np.float32))
    model = ReturnBaseline(x.shape[1])
    optimiser = torch.optim.AdamW(model.parameters(), lr=LR)
    rows = torch.from_numpy(known)
    for _ in range(EPOCHS):
        for index in rows[torch.randperm(len(rows), generator=rngs.torch("awr/shuffle"))].split(BATCH):
            loss = nn.functional.mse_loss(model(x[index]), y[index])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    with torch.inference_mode():
        expected = torch.cat([model(part) for part in x.split(65_536)]).numpy()
    return np.where(np.isfinite(wanted), wanted - expected, 0.0).astype(np.float32)
