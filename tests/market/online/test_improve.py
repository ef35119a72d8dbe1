"""Improvement by regression: returns by hand, shares that are found where they are, policies that keep a margin."""

from __future__ import annotations

import copy

import pytest
import torch

from marlab.market.online.explore import Lived
from marlab.market.online.improve import GAMMA, Fit, advantages, as_policy, layers, returns
from marlab.market.online.trainer import OnlineTrainer
from marlab.market.rules import around
from tests.market.online_cases import CPU, tiny


def test_returns_stop_where_a_game_ended() -> None:
    earned = torch.tensor([[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]])
    ended = torch.tensor([[False, False], [True, False], [False, False]])
    came, known = returns(earned, ended, None)
    assert known.tolist() == [[True, False], [True, False], [False, False]]
    assert torch.allclose(came[:, 0], torch.tensor([1 + GAMMA * 2, 2.0, 4.0]))
    thought = torch.full((3, 2), 10.0)
    came, known = returns(earned, ended, thought, long=0.5)
    assert bool(known.all())
    last = 4 + GAMMA * 10
    assert torch.isclose(came[2, 1], torch.tensor(last))
    assert torch.isclose(came[1, 1], torch.tensor(2 + GAMMA * (0.5 * last + 5)))
    assert came[1, 0] == 2


def lived(choices: torch.Tensor, x: torch.Tensor, rest: torch.Tensor) -> Lived:
    """Games of one day, a seat for every choice."""
    count = len(x)
    nothing = torch.zeros(count, dtype=torch.long)
    return Lived(
        torch.zeros(1, count, 3).half(), rest[None], torch.ones(1, count, dtype=torch.bool), nothing,
        torch.arange(count), x.half(), choices.to(torch.int8), rest, torch.zeros(count),
    )  # fmt: skip


def test_what_choices_bring_is_found_where_it_depends_on_the_situation() -> None:
    draw = torch.Generator().manual_seed(0)
    count = 3000
    x = torch.zeros(count, 4)
    x[:, 0] = torch.rand(count, generator=draw) * 2 - 1
    choices = torch.zeros(count, 4)
    choices[:, 1] = (torch.rand(count, generator=draw) < 0.3).float() * 2  # the second other lot
    noise = 0.05 * torch.randn(count, generator=draw)
    rest = 0.3 * x[:, 1] + (choices[:, 1] > 0) * x[:, 0] * 0.1 + noise  # good where x > 0, bad where x < 0
    net, told = advantages(lived(choices, x, rest), (16,), Fit(120, 512, 1e-2, 16), draw)
    entry = around.HEADS[0] + 2
    at = torch.zeros(2, 4)
    at[:, 0] = torch.tensor([0.8, -0.8])
    good, bad = (net(at)[:, entry] * told["improve/spread"]).tolist()
    assert 0.05 < good < 0.11 and -0.11 < bad < -0.05
    assert 0.7 < told["improve/slope_lot"] < 1.3
    assert told["improve/slope_op"] == 0.0  # nobody tried


def test_a_margin_is_what_another_choice_must_be_better_by() -> None:
    net = layers(4, around.CHOICES, generator=torch.Generator().manual_seed(0))
    last = net[-1]
    with torch.no_grad():
        last.weight.zero_()
        last.bias.zero_()
        last.bias[1], last.bias[5], last.bias[0] = 0.03, 0.01, 9.0  # accept, a lot; the rule's own entry counts 0
    ((_, bias),) = as_policy(net, 0.02, 2.0)
    logits = bias + torch.tensor(around.prior(2.0))
    assert int(logits[:4].argmax()) == 1 and int(logits[4:11].argmax()) == 0


@pytest.mark.long
def test_a_turn_keeps_the_best_margin_and_goes_on_exactly() -> None:
    settings = {"algo": "improve", "fit_steps": 4, "margins": (0.01, 1.0), "generation_days": 6}
    one = OnlineTrainer(tiny(**settings), CPU)
    told = one.iterate()
    assert told["improve/margin"] in (0.01, 1.0) and told["improve/choices"] > 0
    saved = copy.deepcopy(one.state_dict())
    one.iterate()
    two = OnlineTrainer(tiny(**settings), CPU)
    two.load_state_dict(saved)
    two.iterate()
    for a, b in zip(one.net.state_dict().values(), two.net.state_dict().values()):
        assert torch.equal(a, b)
