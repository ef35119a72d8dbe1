"""Advantages against hand numbers and an independent slow computation."""

from __future__ import annotations

import pytest
import torch

from marlab.lab.ppo.gae import advantages


def test_hand_numbers() -> None:
    # gamma = 0.5, lambda = 0.5. Row 0 runs on; row 1 dies at t = 1; row 2 is cut off at t = 1.
    reward = torch.tensor([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0], [3.0, 3.0, 3.0]])
    value = torch.tensor([[0.0] * 3, [4.0] * 3, [8.0] * 3, [16.0] * 3])
    terminated, truncated = torch.zeros(3, 3, dtype=torch.bool), torch.zeros(3, 3, dtype=torch.bool)
    terminated[1, 1] = truncated[1, 2] = True
    advantage, target = advantages(reward, value, terminated, truncated, 0.5, 0.5)
    # delta: t=0: 1 + .5*4 - 0 = 3; t=1: 2 + .5*8 - 4 = 2 (dead: 2 - 4 = -2); t=2: 3 + .5*16 - 8 = 3
    expected = torch.tensor([[3 + 0.25 * 2.75, 3 + 0.25 * -2, 3 + 0.25 * 2], [2.75, -2, 2], [3, 3, 3]])
    assert torch.equal(advantage, expected)
    assert torch.equal(target, expected + value[:-1])


@pytest.mark.parametrize("lam", [0.0, 0.7, 1.0])
def test_equals_the_sum_of_discounted_errors(lam: float) -> None:
    g = torch.Generator().manual_seed(1)
    steps, rows, gamma = 12, 40, 0.9
    reward, value = torch.randn(steps, rows, generator=g), torch.randn(steps + 1, rows, generator=g)
    terminated = torch.rand(steps, rows, generator=g) < 0.15
    truncated = (torch.rand(steps, rows, generator=g) < 0.15) & ~terminated
    found, _ = advantages(reward, value, terminated, truncated, gamma, lam)
    for b in range(rows):
        for t in range(steps):
            total, weight = 0.0, 1.0
            for k in range(t, steps):
                future = 0.0 if terminated[k, b] else gamma * value[k + 1, b].item()
                total += weight * (reward[k, b].item() + future - value[k, b].item())
                weight *= gamma * lam
                if terminated[k, b] or truncated[k, b]:
                    break
            assert found[t, b].item() == pytest.approx(total, abs=1e-5)
