"""The networks in numpy: what a playing agent computes, without torch.

`plain` takes the weights out of a trained network; `save` and `load` keep them in an `.npz` file, which is what a
submission carries. The results are torch's to five digits. Letters as in the networks' own modules.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marlab.lab.errors import UserError
from marlab.lab.runs.arrays import read_npz
from marlab.lab.runs.files import replacing, trusting
from marlab.market.logs.worldlog import ACCEPT
from marlab.market.rules import goals
from marlab.market.rules.features import PRICE, QUANTITY
from marlab.market.rules.offers import LARGEST_LOT
from marlab.market.rules.partners import NEEDS

Floats = NDArray[Any]
"""Of float32."""

L2_KIND, L3_KIND, L4_KIND = "market/l2", "market/l3", "market/l4"

PRIOR = 2.0
"""Logits added to the operator and the day that the rules would choose: without learning they decide."""
HAS_OFFER, PRICE_MIN, PRICE_MAX = 5, 3, 4
"""Places in `aux`: whether there is an offer to accept, and the bounds of the price issue (divided by PRICE)."""
SPOT = slice(6, 8)
"""Where x_static has the trading prices of input and output, divided by PRICE."""
OPEN_NEEDS = slice(12, 14)
"""Where the extra features, which follow the 12 of x_static, have the open needs."""
SPOT_SHARE = (0.95, 1.05)
"""What a goal asks when nothing else is known, as shares of the trading prices."""
LOWEST = float(np.finfo(np.float32).min)
"""The logit of what is impossible."""
HEADER = "header"
"""The entry of a file that says what it holds."""


class L3Arrays(NamedTuple):
    """What L3 knows at a decision."""

    history: Floats  # [B, T, 4] rows quantity, price, delta, mine
    present: NDArray[np.bool_]  # [B, T] rows that are not padding
    goal: Floats  # [B, 16] of the day
    role: NDArray[np.int64]  # [B] 0 buyer, 1 seller
    baseline: Floats  # [B, 3] quantity, price, delta
    aux: Floats  # [B, 7]
    time_open: NDArray[np.bool_]  # [B, H+1] days that L1 allows
    rule_op: NDArray[np.int64]  # [B] what the acceptance rule would do
    partner: Floats  # [B, P] statistics of the partner; P = 0 without them


class L3Logits(NamedTuple):
    """What L3 wants."""

    op_logits: Floats  # [B, 3] accept, reject, end; accepting is impossible without an offer
    residual: Floats  # [B, 2] quantity and price, to be added to the baseline
    time_logits: Floats  # [B, H+1]; days that L1 forbids are impossible


class Plain:
    """The weights of a network as arrays, with its options and those of the samples it learnt from."""

    def __init__(
        self, kind: str, plan: str, options: Mapping[str, Any], data: Mapping[str, Any], arrays: Mapping[str, Any]
    ) -> None:
        self.kind, self.plan, self.options, self.data = kind, plan, dict(options), dict(data)
        self.arrays: dict[str, Floats] = {name: np.asarray(value, np.float32) for name, value in arrays.items()}

    def linear(self, name: str, x: Floats) -> Floats:
        """A linear layer along the last axis."""
        return x @ self.arrays[f"{name}.weight"].T + self.arrays[f"{name}.bias"]

    def norm(self, name: str, x: Floats) -> Floats:
        """A layer norm along the last axis."""
        centred = x - x.mean(-1, keepdims=True)
        scale = np.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(1e-5))
        return centred / scale * self.arrays[f"{name}.weight"] + self.arrays[f"{name}.bias"]

    def embed(self, name: str, index: NDArray[np.int64]) -> Floats:
        """Rows of an embedding."""
        return self.arrays[f"{name}.weight"][index]

    def small_head(self, name: str, x: Floats) -> Floats:
        """Two linear layers with a ReLU between them."""
        return self.linear(f"{name}.2", relu(self.linear(f"{name}.0", x)))


class PlainManager(Plain):
    """L2: the mean of the goal [B, 16]."""

    def __call__(self, x_static: Floats, x_temporal: Floats, x_role: Floats) -> Floats:
        """[B, n], [B, H+1, C], [B, 2] -> [B, 16]."""
        days = self._convolution("temporal.2", relu(self._convolution("temporal.0", x_temporal)))
        parts = [relu(days).max(1), relu(self.linear("static.0", x_static)), relu(self.linear("role.0", x_role))]
        mean = self.linear("mean", relu(self.linear("trunk.0", np.concatenate(parts, 1))))
        quantity, price = mean.reshape(len(mean), -1, 2).transpose(2, 0, 1)  # [B, 8] each
        if self.options["positive_q"]:
            quantity = softplus(quantity)
        if self.options["gap_quantities"]:
            share = (goals.GAP * goals.SPREAD).astype(np.float32)[:, None]
            quantity = quantity + (share * (x_static[:, None, OPEN_NEEDS] * np.float32(NEEDS))).reshape(len(mean), -1)
        if self.options["spot_prices"]:
            spot = x_static[:, SPOT] * np.float32(PRICE) * np.array(SPOT_SHARE, np.float32)
            price = price + np.tile(spot, (1, price.shape[1] // 2))
        return np.stack([quantity, price], 2).reshape(len(mean), -1)

    def _convolution(self, name: str, x: Floats) -> Floats:
        """Along the days of [B, S, C], as long as before."""
        weight = self.arrays[f"{name}.weight"][:, :, 0]  # [out, C, width]
        width = weight.shape[2]
        padded = np.pad(x, ((0, 0), (width // 2, width // 2), (0, 0)))
        windows = np.concatenate([padded[:, k : k + x.shape[1]] for k in range(width)], 2)  # [B, S, width * C]
        return windows @ weight.transpose(2, 1, 0).reshape(-1, weight.shape[0]) + self.arrays[f"{name}.bias"]


class PlainExecutor(Plain):
    """L3: a small causal transformer over the offers of a negotiation."""

    def __call__(self, inputs: L3Arrays) -> L3Logits:
        """Operators, residuals and days for B decisions."""
        seen = self._encode(inputs)
        rows = np.arange(len(seen))
        op_logits, time_logits = self.linear("op_head", seen), self.linear("time_head", seen)
        op_logits[rows, inputs.rule_op] += np.float32(PRIOR)
        op_logits[inputs.aux[:, HAS_OFFER] < 0.5, ACCEPT] = LOWEST
        base_day = np.clip(inputs.baseline[:, 2].astype(np.int64), 0, time_logits.shape[1] - 1)
        time_logits[rows, base_day] += np.float32(PRIOR)
        time_logits[~inputs.time_open] = LOWEST
        heads = np.concatenate([self.small_head("q_head", seen), self.small_head("p_head", seen)], 1)
        return L3Logits(op_logits, self._residuals(heads, inputs), time_logits)

    def _residuals(self, heads: Floats, inputs: L3Arrays) -> Floats:
        """[B, 2] corrections of the baseline: plan E in widths of the price issue, plan F from the action it names."""
        low, high = _price_bounds(inputs)
        if self.plan == "F":
            share = 1 / (1 + np.exp(-heads))
            action = np.stack([share[:, 0] * np.float32(LARGEST_LOT), low + share[:, 1] * (high - low)], 1)
            return action - inputs.baseline[:, :2]
        corrections = np.tanh(heads) * self.arrays["scales"]
        return np.stack([corrections[:, 0], corrections[:, 1] * (high - low)], 1)

    def _encode(self, inputs: L3Arrays) -> Floats:
        """[B, d] what the last place holds."""
        low, high = _price_bounds(inputs)
        width = np.maximum(high - low, 1)
        place = np.clip((inputs.baseline[:, 1] - low) / width, -2, 3)[:, None]
        scale = np.array([QUANTITY, PRICE, float(self.options["horizon"])], np.float32)
        baseline = np.concatenate([inputs.baseline / scale, place], 1)
        role = self.embed("role", inputs.role)
        prefix = self.linear("goal", inputs.goal / np.tile(np.array([QUANTITY, PRICE], np.float32), 8))
        prefix = prefix + self.linear("baseline", baseline) + self.linear("aux", inputs.aux) + role
        if "partner.weight" in self.arrays:
            prefix = prefix + self.linear("partner", inputs.partner)
        quantity, price, delta, mine = inputs.history.transpose(2, 0, 1)
        places = np.clip((price - low[:, None]) / width[:, None], -2, 3)
        offers = self.linear("quantity", (quantity / np.float32(QUANTITY))[..., None])
        offers = offers + self.linear("price", np.stack([price / np.float32(PRICE), places], 2))
        offers = offers + self.embed("day", delta.astype(np.int64)) + self.embed("turn", mine.astype(np.int64))
        offers = (offers + role[:, None]) * inputs.present[..., None]
        x = np.concatenate([prefix[:, None], offers], 1)  # [B, T+1, d]
        table, slots = self.arrays["place"], x.shape[1]
        # the prefix keeps place 0; offers take the last places
        x = x + np.concatenate([table[:1], table[int(self.options["max_seq_len"]) + 2 - slots :]])
        keys = np.concatenate([np.ones_like(inputs.present[:, :1]), inputs.present], 1)
        allowed = (keys[:, None, :] & np.tri(slots, dtype=bool))[:, None]
        for block in range(int(self.options["n_layers"])):
            x = self._block(f"blocks.{block}", x, allowed)
        return self.norm("norm", x[:, -1])

    def _block(self, name: str, x: Floats, allowed: NDArray[np.bool_]) -> Floats:
        """Attention and a feed-forward part, each normalised before and added to what came in: [B, S, d]."""
        batch, slots, width = x.shape
        heads = int(self.options["n_heads"])
        joint = self.linear(f"{name}.project", self.norm(f"{name}.norm_attention", x))
        q, k, v = joint.reshape(batch, slots, 3, heads, width // heads).transpose(2, 0, 3, 1, 4)
        mixed = attention(q, k, v, np.where(allowed, np.float32(0), np.float32(LOWEST)))
        x = x + self.linear(f"{name}.join", mixed.transpose(0, 2, 1, 3).reshape(batch, slots, width))
        inner = gelu(self.linear(f"{name}.forward_part.0", self.norm(f"{name}.norm_forward", x)))
        return x + self.linear(f"{name}.forward_part.2", inner)


class PlainCoordinator(Plain):
    """L4: attention among the threads of one round."""

    def __call__(self, feats: Floats, days: NDArray[np.int64], roles: NDArray[np.int64], context: Floats) -> Floats:
        """[K, 24], [K], [K] and [30] -> alpha [K], summing to 1."""
        own = self.linear("thread", feats) + self.embed("day", days) + self.embed("role", roles)
        query = self.linear("query", self.linear("context", context[None]) + own)
        keys, values = np.split(self.linear("key_value", own), 2, axis=1)
        distance = np.abs(days[:, None] - days[None, :]).astype(np.float32)
        bias = self.arrays["day_bias"][days[:, None], days[None, :]] - softplus(self.arrays["near"]) * distance
        mixed = attention(self._split(query), self._split(keys), self._split(values), bias)
        hidden = self.norm("norm", own + query + self.linear("join", mixed.transpose(1, 0, 2).reshape(own.shape)))
        return softmax(self.small_head("score", hidden)[:, 0])

    def _split(self, x: Floats) -> Floats:
        """[heads, K, d / heads]"""
        heads = int(self.options["n_heads"])
        return x.reshape(len(x), heads, -1).transpose(1, 0, 2)


KINDS: dict[str, type[Plain]] = {L2_KIND: PlainManager, L3_KIND: PlainExecutor, L4_KIND: PlainCoordinator}


def plain(kind: str, network: Any) -> Plain:
    """A trained network in numpy; `kind`: L2_KIND, L3_KIND or L4_KIND."""
    arrays = {name: value.detach().cpu().numpy() for name, value in network.state_dict().items()}
    return KINDS[kind](kind, getattr(network, "plan", ""), network.options, network.data, arrays)


def save(path: Path, network: Plain) -> None:
    """Write an `.npz` file."""
    header = {name: getattr(network, name) for name in ("kind", "plan", "options", "data")}
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **{HEADER: np.array(json.dumps(header))}, **network.arrays)  # type: ignore[arg-type]


def load(path: Path, kind: str) -> Plain:
    """The network of an `.npz` file."""
    arrays = read_npz(path, "a network in numpy")
    with trusting(f"The file {path} does not hold a network in numpy"):
        header = json.loads(str(arrays.pop(HEADER)))
        if header["kind"] != kind:
            raise UserError(f"The file {path} holds a network of the kind {header['kind']}, expected {kind}.")
        return KINDS[kind](kind, header["plan"], header["options"], header["data"], arrays)


def _price_bounds(inputs: L3Arrays) -> tuple[Floats, Floats]:
    """[B] lowest and highest price of the issue."""
    return inputs.aux[:, PRICE_MIN] * np.float32(PRICE), inputs.aux[:, PRICE_MAX] * np.float32(PRICE)


def attention(q: Floats, k: Floats, v: Floats, bias: Floats) -> Floats:
    """[..., S, d] each; bias [..., S, S] is added to the scores."""
    scores = q @ k.swapaxes(-1, -2) * np.float32(1 / math.sqrt(q.shape[-1])) + bias
    return softmax(scores) @ v


def softmax(x: Floats) -> Floats:
    """Along the last axis."""
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def relu(x: Floats) -> Floats:
    """Nothing below 0."""
    return np.maximum(x, 0)


def softplus(x: Floats) -> Floats:
    """log(1 + exp(x))."""
    return np.logaddexp(x, np.float32(0))


def gelu(x: Floats) -> Floats:
    """x times the normal distribution's share below x."""
    return np.float32(0.5) * x * (1 + erf(x * np.float32(math.sqrt(0.5))))


def erf(x: Floats) -> Floats:
    """The error function to 2e-7, by the rational approximation 7.1.26 of Abramowitz and Stegun."""
    size = np.abs(x)
    t = 1 / (1 + np.float32(0.3275911) * size)
    series: Floats = np.full_like(t, 1.061405429)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = series * t + np.float32(factor)
    return np.copysign(1 - series * t * np.exp(-size * size), x)
