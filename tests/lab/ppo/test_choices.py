"""Distributions over discrete choices against torch's own and against brute force."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import Categorical

from marlab.lab.ppo.choices import apply_mask, best, divergence, log_prob_entropy, sample


def test_log_prob_and_entropy_equal_torch() -> None:
    logits = torch.randn(50, 9, generator=torch.Generator().manual_seed(0))
    heads = (2, 4, 3)
    actions = torch.stack([torch.randint(n, (50,)) for n in heads], -1)
    parts = [Categorical(logits=p) for p in logits.split(list(heads), -1)]
    logp, entropy = log_prob_entropy(logits, actions, heads)
    torch.testing.assert_close(logp, sum(d.log_prob(actions[:, i]) for i, d in enumerate(parts)))
    torch.testing.assert_close(entropy, sum(d.entropy() for d in parts))
    single, _ = log_prob_entropy(logits, actions[:, 0], (9,))
    torch.testing.assert_close(single, Categorical(logits=logits).log_prob(actions[:, 0]))


def test_sample_frequencies() -> None:
    logits = torch.log(torch.tensor([0.5, 0.3, 0.2, 0.9, 0.1])).expand(40_000, -1)
    drawn = sample(logits, (3, 2), torch.Generator().manual_seed(0))
    assert drawn.shape == (40_000, 2)
    shares = torch.bincount(drawn[:, 0]) / len(drawn)
    torch.testing.assert_close(shares, torch.tensor([0.5, 0.3, 0.2]), atol=0.01, rtol=0)
    assert (drawn[:, 1] == 0).float().mean().item() == pytest.approx(0.9, abs=0.01)


def test_noise_that_was_drawn_before_gives_the_same_actions() -> None:
    logits = torch.randn(50, 5, generator=torch.Generator().manual_seed(1))
    noise = torch.empty_like(logits).exponential_(generator=torch.Generator().manual_seed(2))
    kept = noise.clone()
    drawn = sample(logits, (2, 3), torch.Generator().manual_seed(2))
    assert torch.equal(sample(logits, (2, 3), None, noise), drawn) and torch.equal(noise, kept)


def test_masked_choices_are_never_drawn_and_carry_no_entropy() -> None:
    logits = torch.tensor([[100.0, 0.0, 0.0]]).expand(5000, -1)
    mask = torch.tensor([[False, True, True]]).expand(5000, -1)
    masked = apply_mask(logits, mask)
    drawn = sample(masked, (3,), torch.Generator().manual_seed(0))
    assert drawn.min().item() == 1 and drawn.unique().tolist() == [1, 2]
    logp, entropy = log_prob_entropy(masked, drawn, (3,))
    torch.testing.assert_close(entropy, torch.full((5000,), 2.0).log())
    torch.testing.assert_close(logp, torch.full((5000,), 0.5).log())
    assert best(masked, (3,)).unique().tolist() == [1]


def test_gradients_are_finite_under_masks() -> None:
    logits = torch.randn(4, 3, requires_grad=True)
    mask = torch.tensor([[True, False, False]] * 4)
    logp, entropy = log_prob_entropy(apply_mask(logits, mask), torch.zeros(4, dtype=torch.int64), (3,))
    (logp.sum() + entropy.sum()).backward()
    assert logits.grad is not None and bool(logits.grad.isfinite().all())


def test_divergence_is_zero_for_equal_choices_and_adds_up_over_heads() -> None:
    anchor, other = torch.tensor([[2.0, 0.0, 1.0, 0.0]]), torch.tensor([[0.0, 0.0, 1.0, 0.0]])
    assert divergence(anchor, anchor, (2, 2)).item() == 0
    p = torch.softmax(anchor[0, :2], 0)
    assert divergence(anchor, other, (2, 2)).item() == pytest.approx((p * (p / 0.5).log()).sum().item())
