"""The ground: rewards sum to what the worlds earned, places are renewed, the learner sells."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from marlab.market.vector.seats import CONSUMERS
from tests.market.online_cases import ground


def test_rewards_of_whole_worlds_sum_to_what_they_earned() -> None:
    _, there = ground(torch.float64)
    seat, opening = there.rows.seat, there.market.setup.balance[there.rows.seat]
    there._renew = lambda over: None  # type: ignore[method-assign]  # keep the worlds after their end
    sunk = []
    morning = there._morning

    def noted() -> None:
        sunk.append(there._sunk)
        morning()

    there._morning = noted  # type: ignore[method-assign]
    played, rewards = there.play(5)
    assert rewards.ended[-1].all() and not rewards.ended[:-1].any()
    total = rewards.own.sum((0, 2)) + rewards.evening.sum(0)
    earned = (there.market.balance[seat] - opening) / opening
    torch.testing.assert_close(total, earned + torch.stack(sunk).sum(0), atol=1e-9, rtol=1e-9)
    assert rewards.own.sum() > 0 and len(played.step) > 30


def test_a_negotiation_pays_once_when_it_ends_with_a_contract_and_never_otherwise() -> None:
    _, there = ground(torch.float64)
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []
    signed = there._signed

    def noted() -> torch.Tensor:
        own = signed()
        units = there.rows.gather(there.market.threads.agreed_units)[:, CONSUMERS]
        seen.append((own, units))
        return own

    there._signed = noted  # type: ignore[method-assign]
    there.play(3)
    for own, units in seen:
        assert torch.equal((own != 0).sum(0), (units > 0).long())  # [N, K]: in one round, or in none
    assert sum(int((units > 0).sum()) for _, units in seen) > 5


def test_rollouts_are_the_same_with_the_rule_in_c_and_in_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    changes: dict[str, Any] = {"worlds": 6, "shapes": ("2x3", "3x4", "4x3")}  # one batch of all, padded
    _, quick = ground(**changes)
    if quick.player._native is None:
        pytest.skip("there is no C compiler")
    rows, rewards = quick.play(2)
    monkeypatch.setattr("marlab.market.vector.rule_w.native", lambda market, dtype: None)
    plain, earned = ground(**changes)[1].play(2)
    assert len(rows.step) > 100
    for name in ("step", "seat", "partner", "mask", "choices"):
        assert torch.equal(getattr(rows, name), getattr(plain, name)), name
    torch.testing.assert_close(rows.x, plain.x, rtol=0, atol=1e-6)  # what waiting is worth is summed in another order
    torch.testing.assert_close(rows.logp, plain.logp, rtol=0, atol=1e-5)
    assert torch.equal(rewards.own, earned.own) and torch.equal(rewards.evening, earned.evening)


@pytest.mark.long
def test_places_are_renewed_and_the_same_seed_is_the_same_play() -> None:
    first, second = (ground(days=(5, 6))[1].play(7) for _ in range(2))
    assert first[1].ended.any()
    assert torch.equal(first[0].choices, second[0].choices)
    assert torch.equal(first[1].evening, second[1].evening)
    assert first[1].evening.isfinite().all()
    assert first[0].mask.gather(1, first[0].choices[:, :1]).all()  # what was chosen was open


def test_a_critic_may_see_who_the_others_are() -> None:
    trainer, there = ground()
    others = there.others()
    assert others.shape == (len(there.rows), there.market.wide, 3 * trainer.pool.kinds)
    assert (others[..., : trainer.pool.kinds].sum(-1) == 1).all()
