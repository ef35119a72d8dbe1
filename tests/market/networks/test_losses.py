"""Losses of offline learning against hand numbers, and what must have no gradient."""

from __future__ import annotations

import math

import pytest
import torch

from marlab.market.logs.worldlog import ACCEPT, END, REJECT
from marlab.market.networks.executor import L3Output, TemporalDecisionTransformer
from marlab.market.networks.losses import (
    ActionLabels,
    action_loss,
    advantage_weights,
    goal_loss,
    standardise,
    transform_quantity,
    weight_loss,
)
from tests.market.network_cases import decisions


def test_goal_loss_by_hand() -> None:
    mean, label = torch.zeros(2, 16), torch.zeros(2, 16)
    mean[0, 0], mean[0, 1] = 3.0, 2.0  # buy quantity and price of bucket 0
    mean[1, 2] = 1.0  # sell quantity, of a factory that cannot sell
    roles = torch.tensor([[1.0, 1.0], [1.0, 0.0]])
    found = goal_loss(mean, label, roles)
    assert float(found.loss) == pytest.approx((9 + 4) / 16 / 2)
    assert float(found.square / found.weight) == pytest.approx(13 / 24)
    curved = goal_loss(mean, label, roles, "log1p", q_weight=2.0)
    assert float(curved.loss) == pytest.approx((2 * math.log(4) ** 2 + 4) / 24 / 2)


def test_components_without_trade_get_no_gradient() -> None:
    mean = torch.randn(4, 16, requires_grad=True)
    goal_loss(mean, torch.randn(4, 16), torch.tensor([[0.0, 1.0]] * 4), "log1p").loss.backward()
    buying = torch.tensor([0, 1, 4, 5, 8, 9, 12, 13])
    assert (mean.grad[:, buying] == 0).all() and (mean.grad[:, 2] != 0).all()


@pytest.mark.parametrize("transform", ["none", "log1p", "sqrt"])
def test_a_negative_quantity_is_never_free(transform: str) -> None:
    quantity = torch.tensor([-3.0, -0.1], requires_grad=True)
    error = transform_quantity(quantity, transform) - transform_quantity(torch.zeros(2), transform)  # type: ignore[arg-type]
    (error**2).sum().backward()
    assert (quantity.grad < -0.1).all()


def labels(op: list[int]) -> ActionLabels:
    n = len(op)
    return ActionLabels(
        torch.tensor(op), torch.ones(n, 2), torch.zeros(n, dtype=torch.long), torch.ones(n, dtype=torch.bool)
    )


def test_action_loss_by_hand() -> None:
    output = L3Output(torch.zeros(3, 3), torch.tensor([[11.0, 1.0], [0, 0], [1.0, 6.0]]), torch.zeros(3, 41))
    found = action_loss(output, labels([REJECT, END, REJECT]))
    assert float(found.op) == pytest.approx(math.log(3))
    assert float(found.quantity) == pytest.approx((1.0 + 0.0) / 2)  # (10 / 10)^2 and 0, over two offers
    assert float(found.price) == pytest.approx((0.0 + 1.0) / 2)
    assert float(found.day) == pytest.approx(math.log(41))
    assert float(found.total) == pytest.approx(float(found.op + found.quantity + found.price + found.day))


def test_no_offer_teaches_no_residual_and_no_day() -> None:
    model = TemporalDecisionTransformer(d_model=32, n_layers=1)
    inputs = decisions(8)
    inputs.aux[:, 5] = 1.0  # an offer to accept
    output = model(inputs)
    found = action_loss(output, labels([ACCEPT, END] * 4))
    assert torch.isfinite(found.total)
    (found.quantity + found.price + found.day).backward()
    for head in (model.q_head, model.p_head, model.time_head):
        assert all(p.grad is None or (p.grad == 0).all() for p in head.parameters())


def test_a_forbidden_day_that_is_no_label_does_no_harm() -> None:
    logits = torch.full((2, 41), torch.finfo(torch.float32).min)
    logits[:, 5] = 0.0
    output = L3Output(torch.zeros(2, 3, requires_grad=True), torch.zeros(2, 2, requires_grad=True), logits)
    told = labels([REJECT, REJECT])._replace(day=torch.tensor([5, 0]), day_valid=torch.tensor([True, False]))
    found = action_loss(output, told)
    assert float(found.day) == pytest.approx(0.0) and torch.isfinite(found.total)


def test_equal_returns_weigh_as_plain_cloning() -> None:
    model = TemporalDecisionTransformer(d_model=32, n_layers=1, dropout=0.0)
    inputs, told = decisions(32), labels([REJECT, ACCEPT, END, REJECT] * 8)
    inputs.aux[:, 5] = 1.0
    weights, _ = advantage_weights(standardise(torch.full((32,), 3.7)))

    def gradient(weight: torch.Tensor | None) -> list[torch.Tensor]:
        model.zero_grad()
        # every label is possible here: the untrained network forbids none of day 0 below
        action_loss(
            model(inputs._replace(time_open=torch.ones(32, 41, dtype=torch.bool))), told, weight
        ).total.backward()
        return [p.grad.clone() for p in model.parameters() if p.grad is not None]

    for a, b in zip(gradient(None), gradient(weights)):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-6)


def test_advantage_weights_are_capped_and_have_mean_one() -> None:
    weights, raw = advantage_weights(torch.tensor([-5.0, 0.0, 1.0, 100.0]))
    assert float(raw.max()) == pytest.approx(20.0, rel=1e-5) and float(raw[2]) == pytest.approx(math.e, rel=1e-5)
    assert float(weights.mean()) == pytest.approx(1.0, rel=1e-5)


def test_weight_loss_of_the_teacher_itself_is_zero() -> None:
    teacher = torch.tensor([[0.5, 0.3, 0.2, 0.0], [0.9, 0.1, 0.0, 0.0]])
    mask = torch.tensor([[True, True, True, False], [True, True, False, False]])
    scores = teacher.clamp_min(1e-9).log().masked_fill(~mask, torch.finfo(torch.float32).min)
    found = weight_loss(scores, teacher, mask)
    assert float(found.kl) == pytest.approx(0.0, abs=1e-6) and float(found.agree) == 1.0
    flat = weight_loss(torch.zeros(2, 4).masked_fill(~mask, -1e9), teacher, mask)
    by_hand = (sum(p * math.log(3 * p) for p in (0.5, 0.3, 0.2)) + sum(p * math.log(2 * p) for p in (0.9, 0.1))) / 2
    assert float(flat.kl) == pytest.approx(by_hand, rel=1e-4)
