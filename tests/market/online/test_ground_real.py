"""Real worlds as a ground: who plays where, and transitions in the layout of the vector market's ground."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from marlab.lab.errors import UserError
from marlab.market.agent.learning import Experience
from marlab.market.networks import around as files
from marlab.market.online import ground_real
from marlab.market.online.ground_real import LEARNER, Seat
from marlab.market.online.settings import OnlineConfig
from marlab.market.rules import around
from marlab.market.simulator.worlds import WorldSpec
from marlab.market.vector.replay import read


def a_seat(days: int = 2, buyers: int = 2, seat: int = 0) -> Seat:
    """Two choices, one sale of each day, and evenings of .1."""
    lived = Experience(
        day=np.array([0, 1]), round=np.array([3, 0]), partner=np.array([1, 0]),
        x=np.full((2, around.INPUTS), seat, np.float32), mask=np.ones((2, around.CHOICES), bool),
        choices=np.zeros((2, 4), np.int64), sale=np.array([[0, 3, 1, 0.5], [1, 0, 0, 0.25], [1, 0, 0, 0.25]]),
        evening=np.full(days, 0.1), buyers=(),
    )  # fmt: skip
    arrays = {f"0.{name}": getattr(lived, name) for name in Experience._fields[:-1]}
    kinds = {"0.buyers": np.array(["SBD", "Nobody"][:buyers]), "0.rivals": np.array(["LearningAgent"])}
    return Seat({**arrays, **kinds}, 0, days)


def test_experts_take_turns_and_the_learner_sells() -> None:
    config = OnlineConfig(shapes=("2x3", "official"), learners=2, experts=("RandomStdAgent", "SBD"), days=(6, 9))
    specs = ground_real.planned(config, 6, 1)
    assert specs == ground_real.planned(config, 6, 1) != ground_real.planned(config, 6, 2)
    assert len({spec.world_id for spec in specs}) == 6
    for spec in specs:
        last = max(spec.processes)
        mine = [level for level, agent in zip(spec.processes, spec.agents) if agent == LEARNER]
        assert len(mine) == 2 and max(mine) < last and 6 <= spec.n_steps <= 9
    counts = [sum(spec.agents.count(name) for spec in specs) for name in config.experts]
    assert min(counts) > 0.5 * max(counts)


def test_transitions_have_the_layout_of_the_vector_ground() -> None:
    seats = [a_seat(), a_seat(days=3, buyers=1, seat=1)]
    rows, rewards = ground_real.transitions(seats, lambda x, mask, choices: x[:, 0])
    assert rows.step.tolist() == [3, 20, 3, 20] and rows.seat.tolist() == [0, 0, 1, 1]
    assert rows.partner.tolist() == [1, 0, 1, 0] and rows.logp.tolist() == [0, 0, 1, 1]
    assert rewards.own.shape == (60, 2, 2) and rewards.evening.shape == rewards.ended.shape == (3, 2)
    assert float(rewards.own[3, 0, 1]) == 0.5 and float(rewards.own[20, 0, 0]) == 0.5  # two contracts are summed
    assert rewards.ended.nonzero().tolist() == [[1, 0], [2, 1]]
    assert float(rewards.evening[:, 0].sum()) == pytest.approx(0.2)


def test_a_central_critic_is_told_who_the_others_are() -> None:
    told = ground_real.others([a_seat()], ["RandomStdAgent", "learner", "SBD"])
    assert told.shape == (1, 2, 9)
    assert told[0, 0].tolist() == [0, 0, 1, 0, 0, 0.5, 0, 1, 0] and told[0, 1, :3].tolist() == [0, 0, 0]


def test_a_world_gives_a_record_and_what_the_learner_lived_through(tmp_path: Path) -> None:
    files.save(tmp_path / "a.npz", files.untrained(1.0))
    agents = (LEARNER, "SyncRandomStdAgent", "RandomStdAgent", "SyncRandomStdAgent")
    spec = WorldSpec("w", 1, 2, 5, (0, 0, 1, 1), agents, (True,) * 4)
    record, lived = ground_real.play_task(spec.to_dict(), (tmp_path / "a.npz").read_bytes())
    (tmp_path / "w.parquet").write_bytes(record)
    world = read(tmp_path / "w.parquet")
    assert world.agents == ("LearningAgent", *agents[1:]) and len(world.tables["decisions"]["op"]) > 20
    (tmp_path / "w.npz").write_bytes(lived)
    (seat,) = ground_real.read(tmp_path / "w.npz")
    assert seat.days == 5 and seat.rivals == ["SyncRandomStdAgent"]
    assert sorted(seat.buyers) == ["RandomStdAgent", "SyncRandomStdAgent"]
    rows, rewards = ground_real.transitions([seat], lambda x, mask, choices: torch.zeros(len(x)))
    sold = {(int(d), int(r), int(p)) for d, r, p, _ in seat.lived.sale}
    assert len(rows.step) > 10 and len(sold) == int((rewards.own[:, 0] != 0).sum())
    opening, final = float(world.config.balance[0, 0, 0]), float(world.balance[-1, 0])
    assert (final - opening) / opening <= float(rewards.own.sum() + rewards.evening.sum())  # supply is sunk
    with pytest.raises(UserError, match="holds no experience"):
        ground_real.read(tmp_path / "a.npz")
