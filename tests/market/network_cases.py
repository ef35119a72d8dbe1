"""For tests of networks: random inputs, and weights that are no longer those of the start."""

from __future__ import annotations

from typing import cast

import torch

from marlab.market.logs.worldlog import ACCEPT, REJECT
from marlab.market.networks.coordinator import GlobalCoordinator
from marlab.market.networks.executor import L3Inputs, TemporalDecisionTransformer
from marlab.market.networks.forward import L3_KIND, L4_KIND, PlainCoordinator, PlainExecutor, plain

SLOTS = 41


def decisions(batch: int, length: int = 20, seed: int = 0, partner: int = 0) -> L3Inputs:
    """Random inputs of L3; histories of 0 to `length` offers."""
    g = torch.Generator().manual_seed(seed)

    def uniform(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=g)

    present = torch.arange(length, 0, -1) <= torch.randint(0, length + 1, (batch, 1), generator=g)
    history = torch.stack(
        [uniform(batch, length) * 30, uniform(batch, length) * 50, (uniform(batch, length) * 11).floor(),
         (uniform(batch, length) > 0.5).float()], 2,
    )  # fmt: skip
    aux = uniform(batch, 7)
    aux[:, 5] = (uniform(batch) > 0.3).float()
    open_days = uniform(batch, SLOTS) > 0.5
    base_day = open_days.float().argmax(1)
    open_days[:, 0] |= ~open_days.any(1)
    baseline = torch.stack([uniform(batch) * 30, uniform(batch) * 50, base_day.float()], 1)
    rule = torch.where((aux[:, 5] > 0) & (uniform(batch) > 0.5), ACCEPT, REJECT)
    return L3Inputs(
        history * present.unsqueeze(2), present, uniform(batch, 16) * 20, torch.randint(0, 2, (batch,), generator=g),
        baseline, aux, open_days, rule, uniform(batch, partner),
    )  # fmt: skip


def disturbed(model: torch.nn.Module) -> torch.nn.Module:
    """The network with weights of a trained one: no head is zero any more."""
    torch.manual_seed(1)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.05)
    return model.eval()


def rounds(batch: int, threads: int, seed: int = 0) -> tuple[torch.Tensor, ...]:
    g = torch.Generator().manual_seed(seed)
    feats = torch.rand(batch, threads, 24, generator=g)
    days = torch.randint(0, 11, (batch, threads), generator=g)
    roles = torch.randint(0, 2, (batch, threads), generator=g)
    return feats, days, roles, torch.rand(batch, 30, generator=g), torch.ones(batch, threads, dtype=torch.bool)


def numpy_l3(network: TemporalDecisionTransformer) -> PlainExecutor:
    """The same network as play uses it."""
    return cast(PlainExecutor, plain(L3_KIND, network))


def numpy_l4(network: GlobalCoordinator) -> PlainCoordinator:
    """The same network as play uses it."""
    return cast(PlainCoordinator, plain(L4_KIND, network))
