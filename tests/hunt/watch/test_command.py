"""Films tell the truth: beliefs, expectations and plans of those who have them, and of an ideal observer else."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from marlab.cli import main as cli
from marlab.hunt.evaluate.agents import find_agent, scripted
from marlab.hunt.game.config import game_config
from marlab.hunt.watch.command import WatchConfig, watch
from marlab.hunt.watch.frame import HEIGHT, WIDTH, frame
from marlab.hunt.watch.record import Episode, record
from marlab.lab.errors import UserError
from marlab.lab.film import can_film
from tests.hunt.evaluate_cases import hop_run
from tests.hunt.helpers import seeded, small_game


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Episode:
    """A planning agent in seat 2 among rules."""
    hop = find_agent(str(hop_run(tmp_path_factory.mktemp("watch") / "hop")))
    game = small_game(game_config("msh_4x4"))
    agents = [scripted("NS"), hop, scripted("NH"), scripted("RAND")]
    return record(game, agents, [game.reset(1, seeded(k)) for k in range(2)], seeded(5), "msh_4x4")


def test_an_ideal_observer_finds_out_what_everybody_wants() -> None:
    episode = watch(WatchConfig("NS", "NS+2NH", seed=2, after=6))
    assert episode.players == ["NS", "NS", "NH", "NH"] and episode.episode == 6
    first = episode.moments[0].thoughts[0]
    assert first is not None and first.source == "ideal observer"
    beliefs = {opinion.about: opinion.stag for opinion in first.opinions}
    assert beliefs[1] > 0.8 and beliefs[2] < 0.2 and beliefs[3] < 0.2  # six episodes told it
    fresh = watch(WatchConfig("NS", "NS+2NH", seed=2)).moments[0].thoughts[0]
    assert fresh is not None and all(opinion.stag == 0.5 for opinion in fresh.opinions)


def test_what_is_expected_of_a_known_player_is_what_it_does() -> None:
    episode = watch(WatchConfig("NH", "3NH", seed=1, after=8))
    for moment in episode.moments[:-1]:
        for thought in filter(None, moment.thoughts):
            for opinion in thought.opinions:
                assert sum(opinion.expected) == pytest.approx(1.0)
                taken = moment.action[opinion.about]
                assert taken is not None and opinion.expected[taken] > 0.05


def test_a_planning_agent_tells_its_own_mind(planned: Episode) -> None:
    thought = planned.moments[0].thoughts[1]
    assert thought is not None and thought.source == "own models" and len(thought.opinions) == 3
    assert thought.visits is not None and sum(thought.visits) > 0 and thought.line
    assert thought.policy is not None and sum(thought.policy) == pytest.approx(1.0)
    assert planned.moments[0].action[1] == int(np.argmax(thought.policy))  # it is greedy
    assert planned.moments[0].thoughts[0].source == "ideal observer"  # type: ignore[union-attr]


def test_an_episode_adds_up(planned: Episode) -> None:
    for before, after in zip(planned.moments, planned.moments[1:]):
        assert after.scene.t == before.scene.t + 1
        for seat, place in enumerate(before.scene.players):
            gone = place is None
            assert (before.action[seat] is None) == gone == (before.thoughts[seat] is None)
    last = planned.moments[-1]
    assert all(action is None for action in last.action)
    caught = [bool(got) for got in last.scene.got]
    assert [earned > 0 for earned in last.earned] == caught


def test_frames_are_pictures_of_one_size_that_change(planned: Episode) -> None:
    first, last = frame(planned, 0), frame(planned, len(planned.moments) - 1)
    assert first.shape == last.shape == (HEIGHT, WIDTH, 3) and first.dtype == np.uint8
    assert (first != last).any() and first.std() > 10
    large = watch(WatchConfig("EXPL", game="msh_8x8_b5"))
    assert frame(large, 0).shape == (HEIGHT, WIDTH, 3)


def test_the_command_writes_film_and_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["hunt", "watch", "NS", "--team", "NS+2NH", "--seat", "3", "--seconds", "0.1", "--pictures"]
    assert cli([*words, "--out", str(tmp_path)]) == 0
    told = json.loads((tmp_path / "episode.json").read_text())
    assert told["players"] == ["NH", "NH", "NS", "NS"] and told["frames"][0]["scene"]["t"] == 0
    assert len(list(tmp_path.glob("step_*.png"))) == len(told["frames"])
    assert (tmp_path / "episode.mp4").exists() == can_film()
    assert "earned:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({}, "Name an agent"),
        ({"agent": "NS", "game": "msg_4x4"}, "not a stag hunt"),
        ({"agent": "NS", "seat": 5}, "seat is 5"),
        ({"agent": "NS", "team": "NS"}, "has 1 members"),
        ({"agent": "NS", "after": -1}, "after is -1"),
        ({"agent": "NS", "seconds": 0.0}, "seconds is 0"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, object], told: str) -> None:
    with pytest.raises(UserError, match=told):
        WatchConfig(**wrong)  # type: ignore[arg-type]
