"""PPO: losses against hand numbers, tiny problems with a known optimum, masks, dead rows and resumption."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from marlab.lab.ppo.choices import best
from marlab.lab.ppo.config import PPOConfig
from marlab.lab.ppo.nets import ActorCritic
from marlab.lab.ppo.ppo import PPO, _explained_variance, advantages, normalized, policy_loss, value_loss
from marlab.lab.runs.rng import Rngs
from marlab.lab.runs.testing import assert_resume_equal, assert_same
from tests.lab.ppo.toys import Bandit, Identity, Result
from tests.lab.tiny import TinyConfig, TinyTrainer


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


def test_policy_loss_hand_numbers() -> None:
    # ratios 1.5, 0.5, 1.0 with clip 0.2: min(1.5, 1.2) * 2; min over -1: max(-0.5, -0.8) is -0.8; 1 * 1
    old = torch.zeros(3)
    logp = torch.tensor([1.5, 0.5, 1.0]).log()
    loss, kl, share = policy_loss(logp, old, torch.tensor([2.0, -1.0, 1.0]), 0.2)
    assert loss.item() == pytest.approx(-(2.4 - 0.8 + 1.0) / 3)
    assert kl.item() == pytest.approx((0.5 - math.log(1.5) - 0.5 - math.log(0.5)) / 3)
    assert share.item() == pytest.approx(2 / 3)
    same = torch.tensor([-1.0, -2.0])
    assert policy_loss(same, same, torch.ones(2), 0.0)[2] == 0  # at the limit is not beyond it


def test_value_loss_hand_numbers() -> None:
    value, old, target = torch.tensor([2.0, 0.0]), torch.tensor([1.0, 0.1]), torch.tensor([4.0, 1.0])
    assert value_loss(value, old, target, None).item() == pytest.approx((4 + 1) / 2)
    # clipped to 1.5 and 0.0
    assert value_loss(value, old, target, 0.5).item() == pytest.approx((6.25 + 1) / 2)


def test_normalized() -> None:
    torch.testing.assert_close(normalized(torch.tensor([1.0, 3.0])), torch.tensor([-1.0, 1.0]) / math.sqrt(2))
    assert normalized(torch.tensor([5.0])).item() == 5.0


def make(obs: int, heads: tuple[int, ...], seed: int = 0, **settings: float | int) -> PPO:
    rngs = Rngs(seed)
    net = ActorCritic(obs, heads, (32,), generator=rngs.torch("init"))
    return PPO(
        net, PPOConfig(**{"n_steps": 16, "batch_size": 128, "learning_rate": 3e-3, **settings}), rngs.torch("policy")
    )  # type: ignore[arg-type]


def test_a_bandit_is_solved_and_masked_arms_are_never_pulled() -> None:
    world, ppo = Bandit(32, 5, forbidden=(4, 1)), make(1, (5,))
    for _ in range(60):
        stats = ppo.update(ppo.collect(world), 3e-3, 0.0)
    assert stats["ppo/samples"] == 32 * 8  # every second step is a reset and is not learned from
    assert world.taken[[1, 4]].tolist() == [0, 0]
    logits = ppo.net.logits(torch.ones(1, 1)).masked_fill(~world.mask[:1, 0], -1e9)
    assert logits.softmax(-1)[0, 3].item() > 0.95


def test_an_identity_world_with_two_heads_and_dead_rows_is_solved() -> None:
    world, ppo = Identity(32, (2, 3), 10, torch.Generator().manual_seed(3)), make(5, (2, 3))
    for _ in range(60):
        ppo.update(ppo.collect(world), 3e-3, 0.0)
    view = world.observe()
    chosen = best(ppo.net.logits(view.obs), (2, 3))
    assert (chosen == world.digits).float().mean().item() == 1.0


def test_rows_that_do_not_act_change_nothing() -> None:
    """Garbage in every dead row of a rollout leaves the update as it is, bit for bit."""
    results = []
    for garbage in (False, True):
        world, ppo = Identity(8, (2, 3), 10, torch.Generator().manual_seed(3)), make(5, (2, 3))
        rollout = ppo.collect(world)
        assert 0 < (~rollout.acting).sum().item() < rollout.acting.numel() / 2
        if garbage:
            dead = ~rollout.acting
            rollout.obs[dead], rollout.logp[dead], rollout.reward[dead] = 1e6, -50.0, 1e6
        ppo.update(rollout, 1e-3, 0.01)
        results.append(ppo.net.state_dict())
    assert_same(*results)


class Clock:
    """Pays 1 per step; episodes of 10 steps either end there or are only cut off there. Time cannot be seen."""

    def __init__(self, ends: bool) -> None:
        self.ends, self.t = ends, torch.zeros(16, 1, dtype=torch.int64)

    @property
    def acting(self) -> torch.Tensor:
        return self.t < 10

    def observe(self) -> torch.Tensor:
        return torch.ones(16, 1, 1)

    def step(self, actions: torch.Tensor) -> Result:
        reward, over = self.acting.float(), self.t == 9
        self.t = (self.t + 1) % 11
        return Result(reward, over & self.ends, over & (not self.ends))


@pytest.mark.parametrize("ends", [False, True])
def test_truncation_is_bootstrapped_and_termination_is_not(ends: bool) -> None:
    """Cut off, the world is worth 1 / (1 - gamma) = 10; if it really ends, the mean of what is left."""
    world, ppo = Clock(ends), make(1, (2,), gamma=0.9, gae_lambda=1.0, n_steps=22, n_epochs=8)
    for _ in range(80):
        ppo.update(ppo.collect(world), 1e-2, 0.0)
    expected = sum((1 - 0.9**k) / 0.1 for k in range(1, 11)) / 10 if ends else 10.0
    assert ppo.net.value(torch.ones(1, 1)).item() == pytest.approx(expected, abs=0.2)


def test_the_kl_limit_stops_an_update() -> None:
    world = Identity(32, (2, 3), 10, torch.Generator().manual_seed(3))
    free, held = make(5, (2, 3), n_epochs=8), make(5, (2, 3), n_epochs=8, target_kl=1e-4)
    rollout = free.collect(world)
    done = free.update(rollout, 1e-2, 0.0)
    all_steps = done["ppo/gradient_steps"]
    assert held.update(rollout, 1e-2, 0.0)["ppo/gradient_steps"] < all_steps
    assert all_steps == 8 * math.ceil(done["ppo/samples"] / free.config.batch_size)  # only the limit ends it early


def test_a_centralised_critic_sees_its_own_input() -> None:
    class Tagged(Identity):
        def observe(self):  # type: ignore[no-untyped-def]
            view = super().observe()
            return view._replace(critic=torch.cat([view.obs, self.t[:, None, None].expand(-1, 2, 1).float()], -1))

    rngs = Rngs(0)
    net = ActorCritic(5, (2, 3), (16,), critic_size=6, generator=rngs.torch("init"))
    ppo = PPO(net, PPOConfig(n_steps=16, batch_size=64), rngs.torch("policy"))
    rollout = ppo.collect(Tagged(4, (2, 3), 10, torch.Generator().manual_seed(3)))
    assert rollout.critic is not None
    torch.testing.assert_close(rollout.value[0], net.value(rollout.critic[0]))
    assert math.isfinite(ppo.update(rollout, 1e-3, 0.0)["ppo/loss"])


def test_resume_is_bit_exact(tmp_path: Path) -> None:
    assert_resume_equal(lambda: TinyTrainer(TinyConfig()), 4, 4, tmp_path)


def test_an_empty_rollout_is_no_accident() -> None:
    world, ppo = Bandit(4, 3), make(1, (3,))
    rollout = ppo.collect(world)
    rollout.acting.zero_()
    assert ppo.update(rollout, 1e-3, 0.0)["ppo/samples"] == 0.0


def test_the_loss_is_the_sum_of_its_parts() -> None:
    config = PPOConfig(value_coef=0.25, clip_range=0.2, normalize_advantage=False)
    net = ActorCritic(3, (4,), (8,), generator=torch.Generator().manual_seed(0))
    ppo = PPO(net, config, torch.Generator().manual_seed(1))
    g = torch.Generator().manual_seed(2)
    obs = torch.randn(6, 3, generator=g)
    actions = torch.tensor([0, 1, 2, 3, 0, 1])
    batch = {
        "obs": obs, "actions": actions, "logp": torch.full((6,), -1.3), "advantage": torch.randn(6, generator=g),
        "value": torch.zeros(6), "target": torch.randn(6, generator=g),
    }  # fmt: skip
    with torch.no_grad():
        loss, stats = ppo.loss(batch, 0.5)
        policy, fit, spread, _, _, total = stats.tolist()
        logits = net.logits(obs).log_softmax(-1)
        entropy = float(-(logits.exp() * logits).sum(-1).mean())
        assert spread == pytest.approx(entropy, rel=1e-5) and spread > 0
        ratio = (logits.gather(1, actions[:, None])[:, 0] + 1.3).exp()
        gain = torch.minimum(ratio * batch["advantage"], ratio.clamp(0.8, 1.2) * batch["advantage"])
        assert policy == pytest.approx(float(-gain.mean()), rel=1e-5)
        assert fit == pytest.approx(float((batch["target"] - net.value(obs)).square().mean()), rel=1e-5)
    assert float(loss) == total == pytest.approx(policy + 0.25 * fit - 0.5 * spread, rel=1e-5)


def test_graphs_are_for_cuda_only() -> None:
    net = ActorCritic(3, (4,), (8,))
    assert not PPO(net, PPOConfig(cuda_graph=True), torch.Generator())._use_graph


def test_explained_variance_by_hand() -> None:
    target = torch.tensor([1.0, 2.0, 3.0, 6.0])
    for value, share in ((target, 1.0), (target + 5, 1.0), (torch.zeros(4), 0.0), (target / 2, 0.75), (-target, -3.0)):
        assert float(_explained_variance(value, target)) == pytest.approx(share)
    assert float(_explained_variance(target, torch.full((4,), 2.0))) == 0.0


def test_normalised_advantages_have_mean_0_and_deviation_1() -> None:
    made = normalized(torch.tensor([1.0, 2.0, 6.0]))
    assert float(made.mean()) == pytest.approx(0.0, abs=1e-6) and float(made.std()) == pytest.approx(1.0, abs=1e-5)
    assert made[2] > made[1] > made[0]
    assert normalized(torch.full((3,), 2.0)).tolist() == [0.0] * 3
    assert normalized(torch.tensor([5.0])).tolist() == [5.0]
    assert normalized(torch.tensor([1.0, 3.0])).tolist() == pytest.approx([-(0.5**0.5), 0.5**0.5], abs=1e-5)
