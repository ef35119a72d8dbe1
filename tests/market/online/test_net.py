"""The learner's network: untrained it says nothing, weakened it avoids the rule, and numpy computes the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from marlab.lab.errors import UserError
from marlab.market.online.net import AroundRule
from marlab.market.rules import around


def net(bonus: float = 2.0, hidden: tuple[int, ...] = (8, 8)) -> AroundRule:
    return AroundRule(hidden, around.INPUTS + 3, bonus, torch.Generator().manual_seed(0))


def test_untrained_only_the_prior_speaks_and_weakened_the_rule_comes_last() -> None:
    x = torch.randn(5, around.INPUTS)
    one = net()
    assert torch.equal(one.logits(x), torch.tensor(around.prior(2.0)).expand(5, -1))
    one.weaken()
    for head in one.logits(x).split(list(around.HEADS), -1):
        assert (head[..., 0] < head[..., 1:].amax(-1)).all()


def test_numpy_computes_the_same_and_gives_it_back() -> None:
    one, x = net(), torch.randn(7, around.INPUTS)
    with torch.no_grad():
        one.policy[-1].weight.normal_()
    plain = one.plain()
    np.testing.assert_allclose(plain(x.numpy()), one.logits(x).detach().numpy(), atol=1e-4)
    other = net(bonus=1.0)
    other.start_from(plain)
    torch.testing.assert_close(other.logits(x), one.logits(x), atol=1e-4, rtol=1e-5)
    with pytest.raises(UserError, match="same --hidden"):
        net(hidden=(4,)).start_from(plain)


def test_the_critic_sees_its_own_inputs() -> None:
    assert net().value(torch.zeros(4, around.INPUTS + 3)).shape == (4,)


def test_what_a_network_may_do_goes_with_it() -> None:
    free = AroundRule((8,), around.INPUTS, 2.0, torch.Generator().manual_seed(0), freedom=around.Freedom(outright=True))
    assert AroundRule.of(free.plain()).freedom.outright
    with pytest.raises(UserError, match="outright"):
        net(hidden=(8,)).start_from(free.plain())
