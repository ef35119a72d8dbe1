"""The L3 and L4 networks: what they do before they have learnt anything, and what must never matter."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from marlab.market.logs.worldlog import ACCEPT, REJECT
from marlab.market.networks.coordinator import GlobalCoordinator
from marlab.market.networks.executor import L3Inputs, L3PolicyModel, TemporalDecisionTransformer, attend_plainly
from marlab.market.networks.losses import weight_loss
from marlab.market.networks.weights import L3_KIND, L4_KIND, load_network, save_network
from marlab.market.rules.coordinator import HeuristicL4Coordinator

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


def test_an_untrained_executor_is_the_baseline() -> None:
    inputs = decisions(1000)
    with torch.inference_mode():
        output = TemporalDecisionTransformer().eval()(inputs)
    assert torch.equal(output.residual, torch.zeros(1000, 2))
    assert torch.equal(output.op_logits.argmax(1), inputs.rule_op)
    assert torch.equal(output.time_logits.argmax(1), inputs.baseline[:, 2].long())


def test_number_of_parameters() -> None:
    count = sum(p.numel() for p in TemporalDecisionTransformer().parameters())
    ours = 3 * 129 + 2 * 128 + 8 * 128 + 2 * 128  # operators, turns, aux and the last norm
    ours += 2 * 128  # prices by their place in the issue: of the baseline and of offers
    assert count == 826_413 + ours


def test_padding_does_not_matter() -> None:
    model = disturbed(TemporalDecisionTransformer())
    short = decisions(64, length=5)
    pad = torch.zeros(64, 15, 4)
    long = short._replace(
        history=torch.cat([pad, short.history], 1), present=torch.cat([pad[..., 0].bool(), short.present], 1)
    )
    garbage = long._replace(history=torch.where(long.present.unsqueeze(2), long.history, torch.ones_like(long.history)))
    with torch.inference_mode():
        for other in (long, garbage):
            for a, b in zip(model(short), model(other)):
                torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def test_plain_attention_is_the_fused_one() -> None:
    q, k, v = (torch.randn(6, 2, 9, 8, generator=torch.Generator().manual_seed(i)) for i in range(3))
    allowed = torch.rand(6, 1, 9, 9, generator=torch.Generator().manual_seed(3)) > 0.4
    allowed[..., 0] = True
    fused = torch.nn.functional.scaled_dot_product_attention(q, k, v, allowed)
    torch.testing.assert_close(attend_plainly(q, k, v, allowed), fused, rtol=1e-5, atol=1e-6)


def test_later_offers_count_and_their_order_too() -> None:
    model = disturbed(TemporalDecisionTransformer())
    inputs = decisions(32)._replace(present=torch.ones(32, 20, dtype=torch.bool))
    with torch.inference_mode():
        here = model(inputs).residual
        there = model(inputs._replace(history=inputs.history.flip(1))).residual
    assert (here - there).abs().max() > 1e-3


@pytest.mark.parametrize("plan", [TemporalDecisionTransformer, L3PolicyModel])
def test_impossible_choices_are_never_made(plan: type[TemporalDecisionTransformer]) -> None:
    model = disturbed(plan())
    inputs = decisions(500)
    with torch.inference_mode():
        output = model(inputs)
    assert not (output.op_logits.softmax(1)[inputs.aux[:, 5] < 0.5, ACCEPT] > 0).any()
    assert not (output.time_logits.softmax(1)[~inputs.time_open] > 0).any()
    assert all(torch.isfinite(part).all() for part in output)


def test_plan_f_names_actions_inside_the_issue() -> None:
    model = disturbed(L3PolicyModel())
    inputs = decisions(200)
    with torch.inference_mode():
        action = model(inputs).residual + inputs.baseline[:, :2]
    low, high = inputs.aux[:, 3] * 50, inputs.aux[:, 4] * 50
    assert ((action[:, 0] >= 0) & (action[:, 0] <= 30)).all()
    between = torch.stack([low, high], 1)
    assert (action[:, 1] >= between.amin(1) - 1e-4).all() and (action[:, 1] <= between.amax(1) + 1e-4).all()


def rounds(batch: int, threads: int, seed: int = 0) -> tuple[torch.Tensor, ...]:
    g = torch.Generator().manual_seed(seed)
    feats = torch.rand(batch, threads, 24, generator=g)
    days = torch.randint(0, 11, (batch, threads), generator=g)
    roles = torch.randint(0, 2, (batch, threads), generator=g)
    return feats, days, roles, torch.rand(batch, 30, generator=g), torch.ones(batch, threads, dtype=torch.bool)


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


@pytest.mark.parametrize(
    "model", [TemporalDecisionTransformer(d_model=32, n_layers=1), L3PolicyModel(d_model=32, n_layers=1)]
)
def test_saved_executors_come_back_as_they_were(tmp_path, model: TemporalDecisionTransformer) -> None:
    disturbed(model)
    model.data = {"l1": {"rules": "guide"}}
    save_network(tmp_path / "l3.pt", model)
    loaded = load_network(tmp_path / "l3.pt", L3_KIND)
    inputs = decisions(16)
    with torch.inference_mode():
        assert all(torch.equal(a, b) for a, b in zip(model(inputs), loaded(inputs)))
    assert type(loaded) is type(model) and loaded.data == model.data


def test_saved_coordinators_come_back_as_they_were(tmp_path) -> None:
    model = disturbed(GlobalCoordinator())
    save_network(tmp_path / "l4.pt", model)
    with torch.inference_mode():
        assert torch.equal(load_network(tmp_path / "l4.pt", L4_KIND)(*rounds(4, 5))[0], model(*rounds(4, 5))[0])
    assert np.isfinite(model(*rounds(4, 5))[0].detach().numpy()).all()
