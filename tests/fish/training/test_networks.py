"""Networks of a config, and which checkpoint a word means."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from marlab.fish.training.assemble import hidden_sizes, sea_config
from marlab.fish.training.networks import (
    KIND,
    PATTERN,
    POLICY,
    SHIPPED,
    find_checkpoint,
    load_policy,
    make_net,
)
from marlab.fish.training.train import FishTrainer
from marlab.lab.config import altered
from marlab.lab.errors import UserError
from marlab.lab.runs.checkpoint import CheckpointStore, load_checkpoint, save_checkpoint
from tests.fish.cases import SMALL


@pytest.mark.parametrize(("neighbours", "width"), [(True, 18), (False, 11)])
def test_a_checkpoint_gives_back_net_and_settings(tmp_path: Path, neighbours: bool, width: int) -> None:
    config = altered(SMALL, include_neighbor_features=neighbours)
    trainer = FishTrainer(config)
    path = CheckpointStore(tmp_path, KIND, PATTERN).save(1, trainer.state_dict())
    trained = load_policy(path)
    assert trained.sea == sea_config(config) and trained.hidden == hidden_sizes(config) and trained.step == 1
    obs = torch.rand(3, width)
    assert torch.equal(trained.net.logits(obs), trainer.net.logits(obs))


@pytest.mark.parametrize(
    "change",
    [
        {"hidden": [10**6, 10**6]}, {"hidden": [1] * 10**5}, {"hidden": "x"}, {"hidden": [64, -1]}, {"net": 3},
        {"net": {}}, {"activation": "none"}, {"sea": {"num_fish": "x"}}, {"sea": 3}, {"hidden": [torch.zeros(2)]},
    ],
)  # fmt: skip
def test_a_strangers_policy_cannot_ask_for_what_it_does_not_hold(tmp_path: Path, change: dict[str, object]) -> None:
    state = load_checkpoint(SHIPPED / "best.pt").state
    save_checkpoint(tmp_path / "x.pt", POLICY, 0, {**state, **change})
    with pytest.raises(UserError, match=r"x\.pt"):
        load_policy(tmp_path / "x.pt")


def test_equal_generators_make_equal_nets() -> None:
    one, two = (make_net(SMALL, torch.Generator().manual_seed(5)).state_dict() for _ in range(2))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_a_folder_means_its_best_model_else_its_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "runs" / "fish" / "a" / "checkpoints"
    store = CheckpointStore(folder, KIND, PATTERN)
    store.save(1, {}, 1.0)
    store.save(2, {})
    assert find_checkpoint("a").name == find_checkpoint(str(folder)).name == "model_iter_1.pt"
    assert find_checkpoint(str(store.path(2))) == store.path(2)
    with pytest.raises(UserError, match=r"There is no 'somewhere\.pt': expected .* or one of the shipped best"):
        find_checkpoint("somewhere.pt")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="holds no checkpoint"):
        find_checkpoint("empty")
