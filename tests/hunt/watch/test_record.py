"""Records tell the truth: beliefs, expectations and plans of those who have them, and of an ideal observer else."""

from __future__ import annotations

import numpy as np
import pytest

from marlab.hunt.watch.command import WatchConfig
from marlab.hunt.watch.film import watch
from marlab.hunt.watch.record import Episode


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
