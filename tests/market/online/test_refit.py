"""The loop of playing among real experts, fitting clones again and going on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from marlab.lab.engine.tasks import EngineConfig
from marlab.lab.runs.trainer import Halfway
from marlab.market.online import ground_real
from marlab.market.online.refit import Refits
from marlab.market.online.settings import OnlineConfig
from marlab.market.online.trainer import OnlineTrainer
from tests.market.online.test_ground_real import a_seat
from tests.market.online_cases import tiny


def refits(config: OnlineConfig, folder: Path, stop: bool = False) -> Refits:
    return Refits(config, folder, EngineConfig("serial"), stop=lambda: stop, log=lambda text: None, quiet=True)


def test_refits_are_spread_over_the_training(tmp_path: Path) -> None:
    config = replace(OnlineConfig(generations=9), clones=tmp_path / "c.npz", refits=2)
    assert [refits(config, tmp_path).turn(step) for step in range(9)] == [0, 0, 0, 1, 0, 0, 2, 0, 0]


def test_what_was_played_is_not_played_again_and_stopping_is_halfway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(tiny(), real_worlds=2)
    asked: list[bytes] = []

    def play(config: Any, specs: Any, weights: bytes, folder: Path, *more: Any) -> list[Path]:
        asked.append(weights)
        return [folder / spec.world_id for spec in specs][: 1 if stopping else 2]

    monkeypatch.setattr(ground_real, "play", play)
    monkeypatch.setattr(ground_real, "read", lambda path: [a_seat()])
    trainer = OnlineTrainer(config, torch.device("cpu"))
    stopping = True
    with pytest.raises(Halfway):
        refits(config, tmp_path, stop=True).play(1, trainer.net)
    stopping = False
    with torch.no_grad():
        next(iter(trainer.net.parameters())).add_(1.0)
    assert len(refits(config, tmp_path).play(1, trainer.net)) == 2
    assert asked[0] == asked[1]  # the missing worlds are played by the network that began


def test_the_trainer_learns_from_real_seats() -> None:
    trainer = OnlineTrainer(tiny(), torch.device("cpu"))
    before = [part.clone() for part in trainer.net.parameters()]
    seats = [a_seat(seat=i % 3) for i in range(6)]
    told = trainer.learn_from(seats)
    assert told["reward/day"] == pytest.approx((1.0 + 0.2) / 2, abs=1e-5) and told["reward/seats"] == 6
    assert any(not torch.equal(a, b) for a, b in zip(before, trainer.net.parameters()))
