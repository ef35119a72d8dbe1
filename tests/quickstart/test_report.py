"""What the quickstart says of its result."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from marlab.market.arena.plan import PlayConfig
from marlab.market.arena.report import Result
from marlab.quickstart.report import Story, learnt, standing, summary, verdict

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
    ("gains", "told"),
    [
        ((0.1, 0.12, 0.08), r"^Training helped: trained minus pure L1 is \+0.100 \[\+0.050, \+0.150\], clear of zero"),
        ((-0.1, -0.12, -0.08), r"^Training did not help .* −0.100 \[−0.150, −0.050\], clear of zero, .* hurt"),
        ((0.3, -0.2, 0.05), r"^Training did not clearly help at this size: .* the interval contains zero"),
        ((0.3,), r"^One market cannot tell whether training helped: trained minus pure L1 is \+0.300\.$"),
    ],
)
def test_verdict_follows_the_interval(gains: tuple[float, ...], told: str) -> None:
    found = story(*gains)
    assert re.search(told, verdict(found))
    assert verdict(found) in summary(found)
    assert found.results()["trained - pure L1"]["value"] == pytest.approx(sum(gains) / len(gains))


def test_the_teacher_is_named_too() -> None:
    assert standing(story(0.1, 0.1)) == "The trained agent is behind PenguinAgent (−0.500 [−0.500, −0.500])."


def test_an_agent_that_cannot_play_is_said() -> None:
    absent = story(0.1, 0.2, left_out={"trained": "init raised ValueError"})
    assert verdict(absent) == "The trained agent could not play: init raised ValueError."
    assert "trained was left out: init raised ValueError" in summary(absent)
    assert "unknown whether training helped" in verdict(story(0.1, 0.2, left_out={"pure L1": "it hangs"}))


def test_a_layer_is_measured_beside_what_needs_no_learning() -> None:
    results: dict[str, Any] = {
        "L2 Q RMSE, test": {"value": 1.0, "low": 0.9, "high": 1.1}, "gap only Q RMSE, test": {"value": 2.0},
        "zero and spot Q RMSE, test": {"value": 9.0}, "L2 P RMSE, test": {"value": 3.0},
        "gap only P RMSE, test": {"value": 2.0}, "zero and spot P RMSE, test": {"value": 2.5},
        "L3 mae_q, test": {"value": 1.0}, "L3 mae_q over best trivial, test": 0.5, "L3 mae_p, test": {"value": 1.0},
        "L3 mae_p over best trivial, test": 1.25, "L3 operator recall, test": 0.9,
        "best trivial operator recall, test": 0.5,
    }  # fmt: skip
    rows = learnt(results)
    assert [(row.other, row.better) for row in rows] == [
        (2.0, True), (2.0, False), (2.0, True), (0.8, False), (0.5, True)
    ]  # fmt: skip
    assert learnt({}) == []
