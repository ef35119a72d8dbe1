"""The network of L4: weights are shares, whatever the order and the padding."""

from __future__ import annotations

import pytest
import torch

from marlab.market.networks.coordinator import GlobalCoordinator
from marlab.market.networks.losses import weight_loss
from marlab.market.rules.executor import HeuristicL4Coordinator
from tests.market.network_cases import rounds


def disturbed(model: torch.nn.Module) -> torch.nn.Module:
    """The network with weights of a trained one: no head is zero any more."""
    torch.manual_seed(1)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.05)
    return model.eval()


@pytest.mark.parametrize("threads", [1, 2, 7, 50])
def test_weights_are_a_distribution(threads: int) -> None:
    model = disturbed(GlobalCoordinator())
    with torch.inference_mode():
        alpha, hidden = model(*rounds(8, threads))
    assert (alpha >= 0).all() and hidden.shape == (8, threads, 64)
    torch.testing.assert_close(alpha.sum(1), torch.ones(8), rtol=0, atol=1e-6)


def test_no_threads_no_weights() -> None:
    assert GlobalCoordinator()(*rounds(3, 0))[0].shape == (3, 0)


def test_padded_threads_get_nothing_and_change_nothing() -> None:
    model = disturbed(GlobalCoordinator())
    feats, days, roles, context, mask = rounds(8, 6)
    mask[:, 4:] = False
    with torch.inference_mode():
        alpha, _ = model(feats, days, roles, context, mask)
        small, _ = model(feats[:, :4], days[:, :4], roles[:, :4], context, mask[:, :4])
    assert (alpha[:, 4:] == 0).all()
    torch.testing.assert_close(alpha[:, :4], small, rtol=1e-5, atol=1e-6)


def test_permuted_threads_permute_their_weights() -> None:
    model = disturbed(GlobalCoordinator())
    feats, days, roles, context, mask = rounds(8, 6)
    order = torch.randperm(6, generator=torch.Generator().manual_seed(3))
    with torch.inference_mode():
        alpha, _ = model(feats, days, roles, context, mask)
        moved, _ = model(feats[:, order], days[:, order], roles[:, order], context, mask)
    torch.testing.assert_close(moved, alpha[:, order], rtol=1e-5, atol=1e-6)


def test_equal_days_may_get_different_weights() -> None:
    model = disturbed(GlobalCoordinator())
    feats, days, roles, context, mask = rounds(8, 2)
    with torch.inference_mode():
        alpha, _ = model(feats, torch.zeros_like(days), torch.zeros_like(roles), context, mask)
    assert (alpha[:, 0] - alpha[:, 1]).abs().max() > 1e-3


def test_coordinator_can_fit_a_teacher_with_a_wide_spread() -> None:
    feats, days, roles, context, mask = rounds(64, 5, seed=4)
    teacher = torch.from_numpy(HeuristicL4Coordinator().weights(days.numpy(), feats[..., 0].numpy() * 2 + 1)).float()
    assert (teacher.amax(1) / teacher.amin(1)).max() > 10
    torch.manual_seed(0)
    model = GlobalCoordinator()
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(200):
        loss = weight_loss(model.scores(feats, days, roles, context, mask)[0], teacher, mask)
        optimiser.zero_grad()
        loss.loss.backward()
        optimiser.step()
    assert float(loss.kl.detach()) < 0.02
