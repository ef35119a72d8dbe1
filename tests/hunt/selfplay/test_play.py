"""Self-play beside guests: who learns, who is met anew."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import pytest
import torch

from marlab.hunt.game.config import game_config
from marlab.hunt.game.rules import STAY
from marlab.hunt.game.views import View
from marlab.hunt.others.codes import Goals
from marlab.hunt.planner.config import VariantName
from marlab.hunt.players.guests import RuleGuests
from marlab.hunt.selfplay.config import GuestConfig
from marlab.hunt.selfplay.play import ImaginedGuests, goal_weights
from marlab.hunt.selfplay.trainer import SelfPlayTrainer
from marlab.lab.errors import UserError
from tests.hunt.helpers import seeded
from tests.hunt.hop_cases import LEARN, goals_for, small_training

FOUR = game_config("msh_4x4")


def test_planners_learn_beside_guests_and_guests_teach_nothing() -> None:
    trainer = SelfPlayTrainer(
        small_training(game=FOUR, guests=GuestConfig(1.0, 0.9), num_envs=8, steps=40, total_steps=960)
    )
    guests = trainer.play.guests
    assert guests is not None and bool(guests.mixed_games.all())
    before = guests.seats.clone()
    trainer.play.step(trainer.replay, 0, 5.0)
    assert torch.equal(trainer.play.diary.there[:, 0], ~before)
    row = trainer.iterate()
    # Every game has guests, so there is no self-play to count, and the planners' reward is told apart.
    assert "episode/reward" not in row
    assert math.isfinite(row["guests/reward"])
    assert float(trainer.play.stats.sum()) == 0.0


def test_a_new_party_is_met_without_prejudice() -> None:
    trainer = SelfPlayTrainer(small_training(game=FOUR, guests=GuestConfig(1.0, 0.0), num_envs=4, steps=40))
    play = trainer.play
    for _ in range(40):
        play.step(trainer.replay, 0, 5.0)
    fresh = play.state.t == 0
    counts = play.memory["counts"]
    assert float(counts.sum()) == 0.0  # every party leaves after one episode
    even = torch.full_like(play.memory["belief"][fresh], 0.5)
    torch.testing.assert_close(play.memory["belief"][fresh], even)


def test_players_who_left_go_on_in_the_original_buffer() -> None:
    """As it should be, there are as many rows as steps of living players; with the fault, everybody has one at every
    step."""

    def played(fault: Literal["none", "rows-after-exit"]) -> SelfPlayTrainer:
        learn = replace(LEARN, legacy_moa_buffer=fault)
        alone = small_training(game=FOUR, num_envs=4, steps=40, total_steps=160, guests=GuestConfig(0.0))
        trainer = SelfPlayTrainer(replace(alone, learn=learn))
        for _ in range(trainer.config.steps):
            trainer.play.step(trainer.replay, 0, 5.0)
        return trainer

    clean, faulty = played("none").replay.written, played("rows-after-exit").replay
    assert len(set(clean.tolist())) > 1 and len(set(faulty.written.tolist())) == 1
    rows = faulty.store.rows[0, : int(faulty.written[0])]
    planes = rows[:, -FOUR.height * FOUR.width * FOUR.channels :].view(-1, FOUR.cells, FOUR.channels)
    absent = planes[..., 0].sum(1) == 0  # its own plane is empty
    assert bool(absent.any())
    assert bool((faulty.store.action[0, : len(rows)][absent] == STAY).all())
    assert bool(rows[absent][:, : FOUR.actions].all()), "every action is legal"


def test_no_guests_where_rules_play() -> None:
    assert SelfPlayTrainer(small_training(agent_roles="HOP,NS")).play.guests is None
    assert SelfPlayTrainer(small_training(guests=GuestConfig(0.0))).play.guests is None
    assert isinstance(SelfPlayTrainer(small_training()).play.guests, ImaginedGuests)


@pytest.mark.parametrize("variant", ["mcts-random", "direct-om"])
def test_minds_without_goals_have_rule_based_guests(variant: VariantName) -> None:
    """They cannot imagine whom they would meet, and rivals shall have the same help."""
    trainer = SelfPlayTrainer(small_training(variant=variant, guests=GuestConfig(share=1.0)))
    play = trainer.play
    assert isinstance(play.guests, RuleGuests) and bool(play.guests.mixed_games.all())
    seats, expected = play.guests.seats.clone(), play.guests.probabilities(View(play.game, play.state))
    play.step(trainer.replay, 0, 5.0)
    torch.testing.assert_close(play.diary.policy[:, 0][seats], expected[seats])
    assert bool((expected.gather(2, play.diary.action[:, 0].unsqueeze(2)).squeeze(2)[seats] > 0).all())
    assert torch.equal(play.diary.there[:, 0], ~seats)  # guests teach nothing themselves
    for _ in range(30):
        play.step(trainer.replay, 0, 5.0)
    assert not torch.equal(play.guests.seats, seats)


def party(share: float = 0.5, stay: float = 0.5, batch: int = 4000) -> ImaginedGuests:
    return ImaginedGuests(GuestConfig(share, stay), batch, 4, seeded(0), goal_weights(Goals.hunt()))


def test_half_of_the_parties_are_of_one_mind() -> None:
    guests = party(share=1.0)
    full = guests.seats.sum(1) == 3
    hares = (guests.wants * guests.seats).sum(1)[full]
    shares = torch.bincount(hares, minlength=4) / len(hares)
    alike, mixed = torch.tensor([1, 0, 0, 1]) / 2, torch.tensor([1, 3, 3, 1]) / 8
    assert bool(((shares - (alike + mixed) / 2).abs() < 0.04).all())


def test_parties_of_every_size_in_every_seat() -> None:
    guests = party()
    size = guests.seats.sum(1)
    assert abs(float(guests.mixed_games.float().mean()) - 0.5) < 0.03 and int(size.max()) == 3
    shares = torch.bincount(size[guests.mixed_games], minlength=4)[1:] / int(guests.mixed_games.sum())
    assert bool(((shares - torch.tensor([1, 3, 5]) / 9).abs() < 0.04).all())
    by_seat = guests.seats.float().mean(0)
    assert bool(((by_seat - 11 / 36).abs() < 0.03).all())  # 22 / 9 guests on average, at half of the tables
    assert abs(float(guests.wants.float().mean()) - 0.5) < 0.02


def test_guests_leave_only_when_an_episode_is_over() -> None:
    guests = party(stay=0.75)
    before = guests.seats.clone(), guests.wants.clone()
    over = torch.arange(4000) < 2000
    new = guests.next_episode(over)
    assert not bool(new[2000:].any()) and abs(float(new[:2000].float().mean()) - 0.25) < 0.04
    assert torch.equal(guests.seats[~new], before[0][~new]) and torch.equal(guests.wants[~new], before[1][~new])
    assert not torch.equal(guests.seats[new], before[0][new])


def test_prototypes_are_drawn_by_what_they_are_after() -> None:
    goals = goals_for("hopplus-mcts")
    weights = goal_weights(goals)
    torch.testing.assert_close(weights.sum(1), torch.ones(2))
    evidence = torch.tensor([[0.0, 0.99, 0.0], [1.0, 0.005, 0.0], [0.0, 0.005, 1.0]])
    waiting = Goals(
        torch.eye(3), evidence, torch.tensor([[0.3, 0.2, 0.0], [0.0, 0.0, 0.5]])
    )  # the second waits in vain
    torch.testing.assert_close(
        goal_weights(waiting), torch.tensor([[0.6, 0.4, 0.0], [0.0, 0.0, 1.0]]), atol=1e-4, rtol=0
    )
    assert waiting.stag.tolist() == [1.0, 1.0, 0.0]
    assert abs(float(Goals(torch.eye(3), evidence).stag[1]) - 0.5) < 1e-6  # captures alone do not tell
    assert goal_weights(Goals.none()).tolist() == [[1.0], [1.0]]


def test_a_guest_acts_as_its_neighbour_expects_of_its_goal() -> None:
    trainer = SelfPlayTrainer(small_training(game=FOUR, guests=GuestConfig(1.0)))
    play, guests = trainer.play, trainer.play.guests
    assert guests is not None
    view = View(play.game, play.state)
    logits, legal = play.mind.others.by_goal(view)
    found = guests.imagined(logits, legal)
    game, seat = 2, 3
    neighbour = logits[game, seat - 1, 0, guests.wants[game, seat]]  # slot 0 of an observer is who sits after it
    allowed = play.game.legal(play.state)[game, seat]
    torch.testing.assert_close(found[game, seat], neighbour.masked_fill(~allowed, -math.inf).softmax(0))


def test_wrong_words() -> None:
    for wrong in ({"share": 1.5}, {"share": -0.1}, {"stay": 1.0}):
        with pytest.raises(UserError, match="guests share"):
            replace(GuestConfig(), **wrong)
