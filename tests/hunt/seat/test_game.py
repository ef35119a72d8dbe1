"""A human at the table: legal moves only, everybody moves at once, and the record is the game."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
import torch

from marlab.hunt.game.rules import ACTION_NAMES
from marlab.hunt.seat.game import HUMAN, TEAMS, HumanGame
from marlab.lab.errors import UserError


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def _play(game: HumanGame, seed: int = 0) -> None:
    rng = random.Random(seed)
    while not game.over:
        game.move(rng.choice(game.legal()))


def test_a_game_to_its_end_is_recorded_move_by_move() -> None:
    game = HumanGame("rules", seat=1, seed=3)
    assert game.players[1] == HUMAN and sorted(game.players) == sorted([HUMAN, "NS", "NS", "NH"])
    _play(game)
    record = game.record()
    (episode,) = record["episodes"]
    assert record["human_seat"] == 1 and episode["players"] == game.players
    assert episode["frames"][-1]["earned"] == game.shown()["earned"]
    assert len(episode["frames"]) == len(game.moments) + 1
    assert all(frame["thoughts"][1] is None for frame in episode["frames"])  # nobody reads the human's mind
    done = [frame["action"][1] for frame in episode["frames"] if frame["action"][1] is not None]
    assert done and set(done) <= set(range(len(ACTION_NAMES)))


def test_what_the_human_sees_before_moving_betrays_no_move() -> None:
    game = HumanGame("mixed", seat=0, seed=5)
    shown = game.shown()
    planner = shown["players"].index("hop_4x4")
    assert shown["sources"][planner] == "own models" and shown["opinions"][0] == []
    about_me = next(o for o in shown["opinions"][planner] if o["about"] == 0)
    assert 0 <= about_me["stag"] <= 1 and sum(about_me["expected"]) == pytest.approx(1, abs=1e-4)
    assert not {"policy", "visits", "line", "action"} & set(shown)


def test_episodes_follow_each_other_and_beliefs_stay() -> None:
    game = HumanGame("rules", seat=0, seed=1)
    with pytest.raises(UserError, match="not over"):
        game.again()
    _play(game)
    assert game.shown()["episode"] == 0 and game.legal() == []
    game.again()
    assert game.shown()["episode"] == 1 and not game.over and len(game.record()["episodes"]) == 2


def test_wrong_moves_teams_and_seats_are_one_sentence() -> None:
    with pytest.raises(UserError, match="no team"):
        HumanGame("../../x", 0, 0)
    with pytest.raises(UserError, match="seat is 9"):
        HumanGame("rules", 8, 0)
    game = HumanGame("rules", 0, 0)
    before = len(game.moments)
    with pytest.raises(UserError, match="is no move here"):
        game.move("fly")
    assert len(game.moments) == before


def test_the_same_seed_and_moves_give_the_same_game() -> None:
    one, two = (HumanGame("rules", 2, 11) for _ in range(2))
    _play(one, 4)
    _play(two, 4)
    assert one.record() == two.record()


@pytest.mark.parametrize("team", TEAMS)
def test_every_team_sits_down(team: str) -> None:
    name, others = TEAMS[team]
    assert len(others) == 3 and name.startswith("msh")
