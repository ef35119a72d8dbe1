"""The L4 network: how much each negotiation of a round counts, computed for all of them together.

Letters: B rounds, K threads of a round (padded), H + 1 days of a plan.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn


class GlobalCoordinator(nn.Module):
    """Attention among a round's threads; threads that deliver around the same day attend to each other most.

    The query is the global context plus the thread itself, with a residual connection, so threads with different
    features can get different weights; the weights are a softmax of unbounded scores.
    """

    def __init__(
        self,
        d_model: int = 64,
        n_heads: int = 4,
        horizon: int = 40,
        thread_feat_dim: int = 24,
        global_feat_dim: int = 30,
    ) -> None:
        super().__init__()
        self.options: dict[str, Any] = {
            "d_model": d_model,
            "n_heads": n_heads,
            "horizon": horizon,
            "thread_feat_dim": thread_feat_dim,
            "global_feat_dim": global_feat_dim,
        }
        self.data: dict[str, Any] = {}  # options of the samples it learnt from
        self.heads = n_heads
        self.thread = nn.Linear(thread_feat_dim, d_model)
        self.day, self.role = nn.Embedding(horizon + 1, d_model), nn.Embedding(2, d_model)
        self.context = nn.Linear(global_feat_dim, d_model)
        self.query, self.key_value = nn.Linear(d_model, d_model), nn.Linear(d_model, 2 * d_model)
        self.join = nn.Linear(d_model, d_model)
        self.norm = nn.LayerNorm(d_model)
        self.near = nn.Parameter(torch.zeros(()))  # softplus of it scales the distance between days
        self.day_bias = nn.Parameter(torch.zeros(horizon + 1, horizon + 1))
        self.score = nn.Sequential(nn.Linear(d_model, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(
        self,
        thread_feats: Tensor,
        thread_times: Tensor,
        thread_roles: Tensor,
        global_state: Tensor,
        thread_mask: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """[B, K, 24], [B, K], [B, K], [B, 30] and [B, K] (bool: is there) -> alpha [B, K] and hidden [B, K, 64].

        alpha sums to 1 over the threads that are there and is 0 elsewhere; it is all zeros where there is none.
        """
        scores, hidden = self.scores(thread_feats, thread_times, thread_roles, global_state, thread_mask)
        return torch.softmax(scores, 1) * thread_mask, hidden

    def scores(
        self,
        thread_feats: Tensor,
        thread_times: Tensor,
        thread_roles: Tensor,
        global_state: Tensor,
        thread_mask: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Unnormalised log-weights [B, K], lowest where there is no thread, and hidden [B, K, 64]."""
        batch, threads, _ = thread_feats.shape
        days = thread_times.long()
        own = self.thread(thread_feats) + self.day(days) + self.role(thread_roles.long())
        query = self.query(self.context(global_state).unsqueeze(1) + own)
        q = self._split(query)
        k, v = (self._split(part) for part in self.key_value(own).chunk(2, 2))
        distance = (thread_times.unsqueeze(2) - thread_times.unsqueeze(1)).abs().float()
        bias = self.day_bias[days.unsqueeze(2), days.unsqueeze(1)] - nn.functional.softplus(self.near) * distance
        lowest = torch.finfo(bias.dtype).min
        bias = bias.masked_fill(~thread_mask.unsqueeze(1), lowest)
        weight = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(q.shape[3]) + bias.unsqueeze(1), 3)
        mixed = (weight @ v).transpose(1, 2).reshape(batch, threads, query.shape[2])
        hidden = self.norm(own + query + self.join(mixed))
        return self.score(hidden).squeeze(2).masked_fill(~thread_mask, lowest), hidden

    def _split(self, x: Tensor) -> Tensor:
        """[B, heads, K, d / heads]"""
        return x.view(*x.shape[:2], self.heads, x.shape[2] // self.heads).transpose(1, 2)
