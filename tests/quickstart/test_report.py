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
    """A tournament: the trained agent ahead of pure L1 by `gains`, one per market, and 0.5 behind PenguinAgent."""
    scores = {"PenguinAgent": 1.5, "trained": 1.0, "pure L1": 1.0}
    agents = [agent for agent in scores if agent not in (left_out or {})]
    seats = []
    for config, gain in enumerate(gains):
        for agent in agents:
            score = scores[agent] - (gain if agent == "pure L1" else 0.0)
            where = {"config": config, "turn": 0, "place": 0, "position": "first", "opening": 100.0}
            seats.append({**where, "agent": agent, "score": score})
    config = PlayConfig(agents=("trained", "pure L1"), design="seats", replace="PenguinAgent", baseline="pure L1")
    return Story(Path("runs/market/x"), {}, Result(config, agents, seats, 9, 9, left_out or {}))


@pytest.mark.parametrize(
    ("gains", "sentence"),
    [
        ((0.1, 0.12, 0.08), r"^Training helped: trained minus pure L1 is \+0.100 \[\+0.050, \+0.150\], clear of zero"),
        ((-0.1, -0.12, -0.08), r"^Training did not help .* −0.100 \[−0.150, −0.050\], clear of zero, .* hurt"),
        ((0.3, -0.2, 0.05), r"^Training did not clearly help at this size: .* the interval contains zero"),
        ((0.3,), r"^One market cannot tell whether training helped: trained minus pure L1 is \+0.300\.$"),
    ],
)
def test_verdict_follows_the_interval(gains: tuple[float, ...], sentence: str) -> None:
    found = story(*gains)
    assert re.search(sentence, told(found)[0])
    assert len(told(found)) == 3 and all(text in summary(found) for text in told(found))
    assert found.results()["trained - pure L1"]["value"] == pytest.approx(sum(gains) / len(gains))


def test_the_teacher_is_named_too() -> None:
    beside = told(story(0.1, 0.1))[1]
    assert beside == "The trained agent is behind its teacher PenguinAgent (−0.500 [−0.500, −0.500])."


def test_an_agent_that_cannot_play_is_said() -> None:
    absent = story(0.1, 0.2, left_out={"trained": "init raised ValueError"})
    assert told(absent) == ["The trained agent could not play: init raised ValueError."]
    assert "trained was left out: init raised ValueError" in summary(absent)
    assert "unknown whether training helped" in told(story(0.1, 0.2, left_out={"pure L1": "it hangs"}))[0]
