"""The network of L3: it begins as the baseline, and nothing impossible comes out of it."""

from __future__ import annotations

import pytest
import torch

from marlab.market.logs.worldlog import ACCEPT
from marlab.market.networks.executor import L3PolicyModel, TemporalDecisionTransformer, attend_plainly
from tests.market.network_cases import decisions, disturbed


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
