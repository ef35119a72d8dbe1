"""Advantages for L3: how much better a day went than days like it usually do.

A decision's return is the discounted sum of what its factory earned from that day on (`samples.reward`), in units of
the factory's own spread; a small network says what to expect in the morning; the advantage is the difference. Days are
columns as in the table `macro` of samples.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from marlab.lab.errors import UserError
from marlab.lab.runs.rng import Rngs
from marlab.market.samples.dataset import Columns
from marlab.market.samples.origin import NEAR

EPOCHS, BATCH, LR = 5, 1024, 1e-3


def returns(reward: NDArray[np.floating], log: NDArray[np.integer], gamma: float) -> NDArray[np.float64]:
    """[D] discounted sums of rewards from each day to the end of its log; rows of a log are together and in order.

    A reward that is unknown (nan) cuts the log in two: its own day has no return, and the days before it count what
    was earned up to there. Rewards hold the change of what stock and contracts are worth, so what comes after the gap
    is not lost but valued.
    """
    total = np.full(len(reward), np.nan)
    running, previous = 0.0, -1
    for row in range(len(reward) - 1, -1, -1):
        if log[row] != previous:
            running, previous = 0.0, log[row]
        if np.isnan(reward[row]):
            running = 0.0
            continue
        running = reward[row] + gamma * running
        total[row] = running
    return total


def scaled_returns(days: Columns, gamma: float) -> NDArray[np.float64]:
    """Returns in units of each log's standard deviation of daily rewards: factories differ tenfold in size."""
    log = np.asarray(days["log"])
    reward = np.asarray(days["reward"], np.float64)
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


def day_features(days: Columns) -> NDArray[np.float32]:
    """[D, F] what the baseline sees of a day."""
    near = days["x_temporal"][:, :NEAR]
    return np.concatenate([days["x_static"], days["x_role"], near.reshape(len(near), -1)], 1).astype(np.float32)


def check_rewards(days: Columns, where: str) -> None:
    """Refuse days of which none has a reward, before anything is trained."""
    if not np.isfinite(days["reward"]).any():
        raise UserError(f"No day of {where} has a reward, so there are no advantages; leave the phase awr out.")


class Expectation:
    """What days like these usually return, learnt from some of them."""

    def __init__(self, days: Columns, gamma: float, seed: int) -> None:
        check_rewards(days, "the samples")
        self.gamma = gamma
        wanted = scaled_returns(days, gamma)
        rngs = Rngs(seed)
        torch.manual_seed(rngs.draw_seed("awr/baseline"))
        x, y = torch.from_numpy(day_features(days)), torch.from_numpy(wanted.astype(np.float32))
        self._model = ReturnBaseline(x.shape[1])
        optimiser = torch.optim.AdamW(self._model.parameters(), lr=LR)
        rows = torch.from_numpy(np.flatnonzero(np.isfinite(wanted)))
        for _ in range(EPOCHS):
            for index in rows[torch.randperm(len(rows), generator=rngs.torch("awr/shuffle"))].split(BATCH):
                loss = nn.functional.mse_loss(self._model(x[index]), y[index])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()

    def advantages(self, days: Columns) -> NDArray[np.float32]:
        """[D] return minus what was to be expected; nan where the log does not tell the return."""
        with torch.inference_mode():
            x = torch.from_numpy(day_features(days))
            expected = torch.cat([self._model(part) for part in x.split(65_536)]).numpy()
        return (scaled_returns(days, self.gamma) - expected).astype(np.float32)
