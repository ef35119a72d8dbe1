"""Discrete choices from logits: one head or several side by side, with masks, without host synchronisation.

Letters: *S rows, H heads, L = sum(heads) logits. With one head an action is [*S], with several it is [*S, H].
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def apply_mask(logits: Tensor, mask: Tensor | None) -> Tensor:
    """Logits [*S, L] with forbidden choices (mask False) at the lowest finite value, so their probability is 0."""
    return logits if mask is None else logits.masked_fill(~mask, torch.finfo(logits.dtype).min)


def sample(
    logits: Tensor, heads: Sequence[int], generator: torch.Generator | None, noise: Tensor | None = None
) -> Tensor:
    """Draw an action per head: arg-max of logit + Gumbel noise, which needs no host round trip.

    `noise` [*S, L] is exponential noise that somebody drew before; it stays as it is.
    """
    if noise is None:
        noise = torch.empty_like(logits).exponential_(generator=generator)
    scores = logits - noise.clamp_min(torch.finfo(logits.dtype).tiny).log_()
    return best(scores, heads)


def best(logits: Tensor, heads: Sequence[int]) -> Tensor:
    """The most likely action per head."""
    if len(heads) == 1:
        return logits.argmax(-1)
    return torch.stack([part.argmax(-1) for part in logits.split(list(heads), -1)], -1)


def log_prob(logits: Tensor, actions: Tensor, heads: Sequence[int]) -> Tensor:
    """Joint log-probability [*S] of the chosen actions."""
    return log_prob_entropy(logits, actions, heads)[0]


def log_prob_entropy(logits: Tensor, actions: Tensor, heads: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Joint log-probability and entropy, both [*S], summed over heads."""
    parts = logits.split(list(heads), -1) if len(heads) > 1 else (logits,)
    chosen = actions.unsqueeze(-1) if len(heads) == 1 else actions  # [*S, H]
    total = entropy = None
    for h, part in enumerate(parts):
        logp = torch.log_softmax(part, -1)
        picked = logp.gather(-1, chosen[..., h : h + 1]).squeeze(-1)
        spread = -(logp.exp() * logp).sum(-1)  # a forbidden choice adds 0 * (lowest finite) = 0
        total = picked if total is None else total + picked
        entropy = spread if entropy is None else entropy + spread
    assert total is not None and entropy is not None
    return total, entropy


def divergence(anchor: Tensor, logits: Tensor, heads: Sequence[int]) -> Tensor:
    """How far the choices of `logits` are from those of `anchor`, KL(anchor | logits) [*S], summed over heads."""
    parts = zip(anchor.split(list(heads), -1), logits.split(list(heads), -1))
    each = []
    for theirs, ours in parts:
        before, now = torch.log_softmax(theirs, -1), torch.log_softmax(ours, -1)
        each.append((before.exp() * (before - now)).sum(-1))
    return torch.stack(each).sum(0)
