"""Orders of threads by Plackett and Luce, and a learner of nothing else."""

from __future__ import annotations

import itertools

import pytest
import torch

from marlab.market.agent.layers import load_layers
from marlab.market.agent.settings import AgentSettings
from marlab.market.networks import around as files
from marlab.market.online.ground_vector import Ground
from marlab.market.online.order import OrderPlayer, log_chance
from marlab.market.online.steer import fare
from marlab.market.online.trainer import OnlineTrainer
from tests.market.online_cases import CPU, tiny


def test_chances_of_all_orders_sum_to_one() -> None:
    keys, there = torch.tensor([[0.3, -1.0, 2.0, 9.0]]), torch.tensor([[True, True, True, False]])
    orders = torch.tensor([[*order, 3] for order in itertools.permutations(range(3))])
    logp, entropy = log_chance(keys.expand(6, 4), orders, there.expand(6, 4))
    assert logp.exp().sum().item() == pytest.approx(1.0)
    assert orders[logp.argmax()].tolist() == [2, 0, 1, 3]
    chance = torch.softmax(keys[0, :3], 0)
    assert entropy[0].item() == pytest.approx(-(chance * chance.log()).sum().item())


@pytest.mark.long
def test_only_the_order_learns_and_without_learning_it_is_the_rule(tmp_path) -> None:  # type: ignore[no-untyped-def]
    config = tiny(algo="ppo", generations=1)
    trainer = OnlineTrainer(config, CPU)
    rule = fare(config, trainer.pool, None, CPU)
    assert torch.equal(fare(config, trainer.pool, trainer.net, CPU, OrderPlayer).score, rule.score)
    ground = Ground(config, trainer.net, trainer.pool, 0, CPU, plays=OrderPlayer)
    data, told = trainer.orders(ground.play(1), ground.play(1), None)
    assert (trainer.ppo.chances(data)[0] - data["logp"]).abs().max() < 1e-5
    assert 0 < told["choices/order_changed"] < 1
    assert trainer.iterate()["ppo/gradient_steps"] > 0
    files.save(tmp_path / "around.npz", trainer.net.plain())
    net = files.load(tmp_path / "around.npz")
    assert net.order and (net.layers[0][0] == 0).all()  # what is done in threads stays the rule's
    assert load_layers(AgentSettings(mode="learned", weights=tmp_path / "around.npz")).l1.rules == "economic"
