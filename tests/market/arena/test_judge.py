"""What a tournament came to, in sentences."""

from __future__ import annotations

import pytest

from marlab.lab.verdict import texts
from marlab.market.arena.judge import verdict
from marlab.market.arena.plan import PlayConfig
from marlab.market.arena.report import Result


def result(*gains: float, agents: tuple[str, ...] = ("a:Mine",)) -> Result:
    """Mine ahead of the baseline by `gains`, one per market."""
    scores = {"a:Mine": 0.0, "Base": 1.0, "Third": 1.1}
    seats = []
    for config, gain in enumerate(gains):
        for agent in (*agents, "Base"):
            score = 1.0 + gain if agent == "a:Mine" else scores[agent]
            where = {"config": config, "turn": 0, "place": 0, "position": "first", "opening": 100.0}
            seats.append({**where, "agent": agent, "score": score})
    config = PlayConfig(agents=agents, design="seats", replace="Base", baseline="Base")
    return Result(config, [*agents, "Base"], seats, len(gains), len(gains))


@pytest.mark.parametrize(
    ("gains", "start", "following"),
    [
        ((0.1, 0.12, 0.08), "Mine plays better: Mine minus Base is +0.100 [", "marlab note"),
        ((-0.1, -0.12, -0.08), "Mine plays worse: Mine minus Base is \u22120.100 [", "marlab note"),
        ((0.3, -0.2, 0.05), "Nobody can tell yet who plays better: Mine minus Base is +0.050 [", "--configs"),
        ((0.3,), "One market cannot tell who plays better: Mine minus Base is +0.300", "--configs"),
    ],
)
def test_the_agent_that_was_asked_about_is_judged(gains: tuple[float, ...], start: str, following: str) -> None:
    first, *_, last = texts(verdict(result(*gains)), "runs/market/x")
    assert first.startswith(start) and following in last


def test_who_earns_most_is_said_where_several_play() -> None:
    said = texts(verdict(result(0.1, 0.12, 0.08, agents=("a:Mine", "Third"))), "r")
    assert len(said) == 3 and "earns most of 3: 1.1" in said[1]


def test_an_unfinished_tournament_says_how_to_go_on() -> None:
    assert texts(verdict(result(), unfinished=True), "r") == [
        "No market is complete yet, so nobody can be compared.",
        "Next: the same command with `--resume` goes on from here.",
    ]
