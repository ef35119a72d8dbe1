"""What the quickstart says of its result."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from marlab.market.arena.plan import PlayConfig
from marlab.market.arena.report import Result
from marlab.quickstart.report import Story, summary, told

pytest.importorskip("scml")
pytest.importorskip("jinja2")


def story(*gains: float, left_out: dict[str, str] | None = None) -> Story:
    """A tournament: the trained agent ahead of its start by `gains`, one per market, and 0.5 behind the rule."""
    scores = {"PenguinAgent": 1.2, "trained": 1.0, "start": 1.0, "rule": 1.5}
    agents = [agent for agent in scores if agent not in (left_out or {})]
    seats = []
    for config, gain in enumerate(gains):
        for agent in agents:
            score = scores[agent] - (gain if agent == "start" else 0.0)
            where = {"config": config, "turn": 0, "place": 0, "position": "first", "opening": 100.0}
            seats.append({**where, "agent": agent, "score": score})
    config = PlayConfig(agents=("trained", "start", "rule"), design="seats", replace="PenguinAgent", baseline="start")
    return Story(Path("runs/market/x"), {}, Result(config, agents, seats, 9, 9, left_out or {}))


@pytest.mark.parametrize(
    ("gains", "sentence"),
    [
        (
            (0.1, 0.12, 0.08),
            r"^Training helped: .* its start is \+0.100 \[\+0.050, \+0.150\], clear of zero",
        ),
        ((-0.1, -0.12, -0.08), r"^Training did harm: .* −0.100 \[−0.150, −0.050\], clear of zero"),
        ((0.3, -0.2, 0.05), r"^Training did not clearly help at this size: .* the interval contains zero"),
        ((0.3,), r"^One market cannot tell whether training helped: trained minus its start is \+0.300\.$"),
    ],
)
def test_verdict_follows_the_interval(gains: tuple[float, ...], sentence: str) -> None:
    found = story(*gains)
    assert re.search(sentence, told(found)[0])
    assert len(told(found)) == 3 and all(text in summary(found) for text in told(found))
    assert found.results()["trained - start"]["value"] == pytest.approx(sum(gains) / len(gains))


def test_the_rule_and_where_it_started_are_named_too() -> None:
    beside = told(story(0.1, 0.1))[1]
    assert beside.startswith("It started −0.600 from the hand-written rule, made bad on purpose, and ends at −0.500 [")


def test_an_agent_that_cannot_play_is_said() -> None:
    absent = story(0.1, 0.2, left_out={"trained": "init raised ValueError"})
    assert told(absent) == ["The trained agent could not play: init raised ValueError."]
    assert "trained was left out: init raised ValueError" in summary(absent)
    assert "unknown whether training helped" in told(story(0.1, 0.2, left_out={"start": "it hangs"}))[0]
