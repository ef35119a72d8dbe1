"""Rewards and advantages on rollouts made by hand."""

from __future__ import annotations

import pytest
import torch

from marlab.market.online.credit import SCALE, Rewards, advantages, signing_round, team_rewards
from marlab.market.vector.rounds import ROUNDS


def test_a_contract_belongs_to_the_choice_that_led_to_it() -> None:
    half = torch.tensor([0, 1, 2, 3])
    caller = signing_round(half, torch.tensor(True))  # it moves in 0, 2; the partner takes its offer of 0 in 1
    assert caller.tolist() == [0, 0, 1, 1]
    responder = signing_round(half, torch.tensor(False))  # it moves in 1, 3; its offer of 1 is taken in 2
    assert responder.tolist() == [0, 0, 0, 1]


def test_others_and_the_evening_count_with_their_share() -> None:
    own = torch.zeros(ROUNDS, 1, 2)
    own[3, 0, 0] = 0.2
    rewards = Rewards(own, torch.tensor([[-0.1]]), torch.zeros(1, 1, dtype=torch.bool))
    total = team_rewards(rewards, 0.5)
    assert total[3, 0].tolist() == pytest.approx([SCALE * 0.2, SCALE * 0.1])
    assert total[ROUNDS - 1, 0].tolist() == pytest.approx([SCALE * -0.05] * 2)
    assert team_rewards(rewards, 1.0).sum() == pytest.approx(SCALE * 2 * 0.1)


def test_advantages_go_from_choice_to_choice_and_stop_where_a_world_ends() -> None:
    reward, value = torch.zeros(2 * ROUNDS, 1, 1), torch.zeros(2 * ROUNDS, 1, 1)
    acts = torch.zeros(2 * ROUNDS, 1, 1, dtype=torch.bool)
    acts[0] = acts[4] = acts[ROUNDS] = True
    reward[2], reward[ROUNDS - 1], reward[ROUNDS + 1] = 1.0, 2.0, 4.0
    value[0], value[4], value[ROUNDS] = 0.5, 0.25, 3.0
    going_on = torch.zeros(2, 1, dtype=torch.bool)
    advantage, target = advantages(reward, value, acts, going_on, 0.5, 0.8)
    last = 4.0 - 3.0
    second = 2.0 + 0.5 * 3.0 - 0.25 + 0.8 * 0.5 * last
    first = 1.0 + 0.25 - 0.5 + 0.8 * second
    assert [advantage[t].item() for t in (ROUNDS, 4, 0)] == pytest.approx([last, second, first])
    assert target[0].item() == pytest.approx(first + 0.5)
    over = torch.tensor([[True], [False]])
    advantage, _ = advantages(reward, value, acts, over, 0.5, 0.8)
    assert advantage[4].item() == pytest.approx(2.0 - 0.25)
