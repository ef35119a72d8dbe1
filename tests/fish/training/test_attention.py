"""Attention over neighbours: order does not matter, the missing do not count, and a shoal trains and loads with it."""

from __future__ import annotations

from pathlib import Path

import torch

from marlab.fish.training.attention import Attending, AttendingActorCritic
from marlab.fish.training.networks import Trained, load_policy, save_policy
from marlab.fish.training.train import FishTrainer
from marlab.lab.config import altered
from tests.fish.cases import SMALL


def test_order_and_absence_of_neighbours_do_not_matter() -> None:
    net = Attending((8,), 3, 1.0, "relu", torch.Generator().manual_seed(0))
    own, neighbours = torch.rand(11), torch.rand(4, 5)
    neighbours[:, 4] = 1.0

    def out(rows: torch.Tensor) -> torch.Tensor:
        return net(torch.cat((own, rows.flatten())))

    torch.testing.assert_close(out(neighbours), out(neighbours[[2, 0, 3, 1]]))
    padded = torch.cat((neighbours, torch.zeros(2, 5)))
    torch.testing.assert_close(out(neighbours), out(padded))
    assert not torch.allclose(out(neighbours), out(neighbours * torch.tensor([2.0, 1, 1, 1, 1])))
    lonely = net(torch.cat((own, torch.zeros(20))))
    torch.testing.assert_close(lonely, net.head(torch.cat((own, torch.zeros(32)))))


def test_a_shoal_that_attends_trains_and_is_loaded_again(tmp_path: Path) -> None:
    config = altered(SMALL, neighbor_view="nearest", include_neighbor_features=True, multi_eval_interval=0)
    trainer = FishTrainer(config)
    before = {k: v.clone() for k, v in trainer.net.state_dict().items()}
    trainer.iterate()
    assert isinstance(trainer.net, AttendingActorCritic)
    assert not torch.equal(before["policy.ask.weight"], trainer.net.state_dict()["policy.ask.weight"])
    hidden = tuple(int(size) for size in config.policy_hidden_sizes.split(","))
    save_policy(Trained(trainer.net, trainer.sea, hidden, config.activation, 1), tmp_path / "p.pt")
    loaded = load_policy(tmp_path / "p.pt")
    obs = trainer.world.observe()
    assert torch.equal(loaded.net.logits(obs), trainer.net.logits(obs))
