"""Self-play beside imagined guests: who learns, who is met anew."""

from __future__ import annotations

import math

import torch

from marlab.hunt.game.config import game_config
from marlab.hunt.selfplay.config import GuestConfig
from marlab.hunt.selfplay.trainer import HopTrainer
from tests.hunt.hop_cases import small_training

FOUR = game_config("msh_4x4")


def test_planners_learn_beside_guests_and_guests_teach_nothing() -> None:
    trainer = HopTrainer(small_training(game=FOUR, guests=GuestConfig(1.0, 0.9), num_envs=8, steps=40, total_steps=960))
    guests = trainer.play.guests
    assert guests is not None and bool(guests.tables.all())
    before = guests.seats.clone()
    trainer.play.step(trainer.replay, 0, 5.0)
    assert torch.equal(trainer.play.diary.there[:, 0], ~before)
    row = trainer.iterate()
    # Every game has guests, so there is no self-play to count, and the planners' reward is told apart.
    assert "episode/reward" not in row
    assert math.isfinite(row["guests/reward"])
    assert float(trainer.play.stats.sum()) == 0.0


def test_a_new_party_is_met_without_prejudice() -> None:
    trainer = HopTrainer(small_training(game=FOUR, guests=GuestConfig(1.0, 0.0), num_envs=4, steps=40))
    play = trainer.play
    for _ in range(40):
        play.step(trainer.replay, 0, 5.0)
    fresh = play.state.t == 0
    counts = play.memory["counts"]
    assert float(counts.sum()) == 0.0  # every party leaves after one episode
    even = torch.full_like(play.memory["belief"][fresh], 0.5)
    torch.testing.assert_close(play.memory["belief"][fresh], even)


def test_no_guests_where_rules_play_or_nobody_is_modelled() -> None:
    assert HopTrainer(small_training(agent_roles="HOP,NS")).play.guests is None
    assert HopTrainer(small_training(variant="mcts-random")).play.guests is None
    assert HopTrainer(small_training(guests=GuestConfig(0.0))).play.guests is None
    assert HopTrainer(small_training(variant="direct-om")).play.guests is not None
