"""The L3 network: from a negotiation so far to what to do next, as a correction of L1's baseline.

`TemporalDecisionTransformer` is plan E: residuals on the baseline, exactly zero before it has learnt. `L3PolicyModel`
is plan F: it names the action itself. Both answer in the same form, so one loss, one trainer and one agent serve both.
Letters: B decisions, T offers of a history (at most 20, latest last, padding on the left), H + 1 days of a plan.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from marlab.market.logs.worldlog import ACCEPT
from marlab.market.networks.forward import HAS_OFFER, PRICE_MAX, PRICE_MIN, PRIOR
from marlab.market.rules.features import PRICE, QUANTITY
from marlab.market.rules.offers import LARGEST_LOT

AUX = 7


class L3Inputs(NamedTuple):
    """What L3 knows at a decision."""

    history: Tensor  # [B, T, 4] rows quantity, price, delta, mine
    present: Tensor  # [B, T] bool: rows that are not padding
    goal: Tensor  # [B, 16] of the day
    role: Tensor  # [B] int64: 0 buyer, 1 seller
    baseline: Tensor  # [B, 3] quantity, price, delta
    aux: Tensor  # [B, 7]
    time_open: Tensor  # [B, H+1] bool: days that L1 allows
    rule_op: Tensor  # [B] int64: what the acceptance rule would do
    partner: Tensor  # [B, P] statistics of the partner; P = 0 without them


class L3Output(NamedTuple):
    """What L3 wants."""

    op_logits: Tensor  # [B, 3] accept, reject, end; accepting is impossible without an offer
    residual: Tensor  # [B, 2] quantity and price, to be added to the baseline
    time_logits: Tensor  # [B, H+1]; days that L1 forbids are impossible


class _Block(nn.Module):
    """Attention and a feed-forward part, each normalised before and added to what came in."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm_attention, self.norm_forward = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * width)
        self.join = nn.Linear(width, width)
        self.forward_part = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor, allowed: Tensor) -> Tensor:
        """x [B, S, d]; allowed [B, 1, S, S] bool."""
        batch, slots, width = x.shape
        heads = self.project(self.norm_attention(x)).view(batch, slots, 3, self.heads, width // self.heads)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        dropout = self.dropout if self.training else 0.0
        attend = attend_plainly if x.is_cuda else functional.scaled_dot_product_attention
        mixed = attend(q, k, v, allowed, dropout)
        x = x + self.drop(self.join(mixed.transpose(1, 2).reshape(batch, slots, width)))
        return x + self.drop(self.forward_part(self.norm_forward(x)))


def attend_plainly(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor, dropout: float = 0.0) -> Tensor:
    """Attention as products and a softmax. On a GPU the fused kernels are made for long sequences: over 21 places they
    took more than half of a training step.
    """
    scores = (q @ k.transpose(2, 3)) * (q.shape[3] ** -0.5)
    weights = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min).softmax(3)
    return functional.dropout(weights, dropout) @ v


class TemporalDecisionTransformer(nn.Module):
    """A small causal transformer over [what the day wants, offer, offer, ...]; the last place decides.

    Places are counted from the end, so the number of padding rows does not matter; at least one row must be there, if
    only padding, because the last place decides. The last layers of the residual heads start at zero, and so do those
    of the two discrete heads, whose logits get the rules' choice as a prior: an untrained network plays L1's baseline.
    """

    plan = "E"
    _goal_scale: Tensor
    _base_scale: Tensor

    def __init__(
        self, horizon: int = 40, d_model: int = 128, n_heads: int = 4, n_layers: int = 4, max_seq_len: int = 20,
        scale_q: float = 30.0, scale_p: float = 2.0, dropout: float = 0.1, d_partner: int = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.options: dict[str, Any] = {
            "horizon": horizon, "d_model": d_model, "n_heads": n_heads, "n_layers": n_layers,
            "max_seq_len": max_seq_len, "scale_q": scale_q, "scale_p": scale_p, "dropout": dropout,
            "d_partner": d_partner,
        }  # fmt: skip
        self.data: dict[str, Any] = {}  # options of the samples it learnt from
        self.max_seq_len = max_seq_len
        self.quantity, self.price = nn.Linear(1, d_model), nn.Linear(2, d_model)
        self.day = nn.Embedding(horizon + 1, d_model)
        self.turn, self.role = nn.Embedding(2, d_model), nn.Embedding(2, d_model)
        self.goal, self.baseline = nn.Linear(16, d_model), nn.Linear(4, d_model)
        self.aux = nn.Linear(AUX, d_model)
        self.partner = nn.Linear(d_partner, d_model) if d_partner else None
        self.place = nn.Parameter(torch.randn(max_seq_len + 1, d_model) * 0.02)
        self.blocks = nn.ModuleList(_Block(d_model, n_heads, dropout) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.op_head = _zero(nn.Linear(d_model, 3))
        self.time_head = _zero(nn.Linear(d_model, horizon + 1))
        self.q_head = nn.Sequential(nn.Linear(d_model, d_model // 2), nn.ReLU(), _zero(nn.Linear(d_model // 2, 1)))
        self.p_head = nn.Sequential(nn.Linear(d_model, d_model // 2), nn.ReLU(), _zero(nn.Linear(d_model // 2, 1)))
        self.scales = nn.Parameter(torch.tensor([scale_q, scale_p]))
        self.register_buffer("_goal_scale", torch.tensor([QUANTITY, PRICE] * 8), persistent=False)
        self.register_buffer("_base_scale", torch.tensor([QUANTITY, PRICE, float(horizon)]), persistent=False)

    def forward(self, inputs: L3Inputs) -> L3Output:
        """Operators, residuals and days for B decisions."""
        seen = self.encode(inputs)
        op_logits = self.op_head(seen).float() + PRIOR * functional.one_hot(inputs.rule_op, 3)
        no_offer = inputs.aux[:, HAS_OFFER : HAS_OFFER + 1] < 0.5
        impossible = torch.finfo(op_logits.dtype).min
        accepts = torch.arange(3, device=op_logits.device) == ACCEPT
        op_logits = op_logits.masked_fill(no_offer & accepts, impossible)
        slots = inputs.time_open.shape[1]
        base_day = inputs.baseline[:, 2].long().clamp(0, slots - 1)
        time_logits = self.time_head(seen).float() + PRIOR * functional.one_hot(base_day, slots)
        time_logits = time_logits.masked_fill(~inputs.time_open, impossible)
        return L3Output(op_logits, self.residuals(seen, inputs), time_logits)

    def residuals(self, seen: Tensor, inputs: L3Inputs) -> Tensor:
        """[B, 2] corrections of the baseline's quantity and price.

        Prices are corrected in widths of the price issue: a product of 10 and one of 40 then look alike.
        """
        low, high = _price_bounds(inputs)
        corrections = torch.cat([self.q_head(seen), self.p_head(seen)], 1).float().tanh() * self.scales
        return torch.stack([corrections[:, 0], corrections[:, 1] * (high - low)], 1)

    def encode(self, inputs: L3Inputs) -> Tensor:
        """[B, d] what the last place holds.

        Prices are given twice: as such, and by their place between the bounds of the issue. Bargaining is about the
        second, which the first hides: an issue is narrow.
        """
        low, high = _price_bounds(inputs)
        width = (high - low).clamp(min=1)
        place = ((inputs.baseline[:, 1] - low) / width).clamp(-2, 3).unsqueeze(1)
        baseline = torch.cat([inputs.baseline / self._base_scale, place], 1)
        prefix = self.goal(inputs.goal / self._goal_scale) + self.baseline(baseline)
        role = self.role(inputs.role)  # [B, d]
        prefix = prefix + self.aux(inputs.aux) + role
        if self.partner is not None:
            prefix = prefix + self.partner(inputs.partner)
        q, p, delta, mine = inputs.history.unbind(2)
        places = ((p - low.unsqueeze(1)) / width.unsqueeze(1)).clamp(-2, 3)
        offers = self.quantity((q / QUANTITY).unsqueeze(2)) + self.price(torch.stack([p / PRICE, places], 2))
        offers = offers + self.day(delta.long()) + self.turn(mine.long()) + role.unsqueeze(1)
        offers = offers * inputs.present.unsqueeze(2)
        x = torch.cat([prefix.unsqueeze(1), offers], 1)  # [B, T+1, d]
        slots = x.shape[1]
        # the prefix keeps place 0; offers take the last places
        x = x + torch.cat([self.place[:1], self.place[self.max_seq_len + 2 - slots :]])
        allowed = _allowed(inputs.present)
        for block in self.blocks:
            x = block(x, allowed)
        return self.norm(x[:, -1])


class L3PolicyModel(TemporalDecisionTransformer):
    """Plan F: the network names quantity and price itself, inside the issue; L1 only clips."""

    plan = "F"

    def residuals(self, seen: Tensor, inputs: L3Inputs) -> Tensor:
        """[B, 2] the named action minus the baseline, so that it is used and taught like a residual."""
        share = torch.cat([self.q_head(seen), self.p_head(seen)], 1).float().sigmoid()
        low, high = _price_bounds(inputs)
        action = torch.stack([share[:, 0] * LARGEST_LOT, low + share[:, 1] * (high - low)], 1)
        return action - inputs.baseline[:, :2]


def _price_bounds(inputs: L3Inputs) -> tuple[Tensor, Tensor]:
    """[B] lowest and highest price of the issue."""
    return inputs.aux[:, PRICE_MIN] * PRICE, inputs.aux[:, PRICE_MAX] * PRICE


def _allowed(present: Tensor) -> Tensor:
    """[B, 1, T+1, T+1] bool: a place sees itself, what came before it and the prefix; nobody sees padding."""
    length = present.shape[1]
    keys = torch.cat([torch.ones_like(present[:, :1]), present], 1)  # [B, T+1]
    before = torch.ones(length + 1, length + 1, dtype=torch.bool, device=present.device).tril()
    return (keys[:, None, :] & before)[:, None]


def _zero(layer: nn.Linear) -> nn.Linear:
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
