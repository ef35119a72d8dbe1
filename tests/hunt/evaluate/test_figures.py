"""Pictures of a score card."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from marlab.hunt.evaluate.card import Block, Line, ScoreCard
from marlab.hunt.evaluate.figures import draw_card
from marlab.hunt.evaluate.scenarios import by_name
from marlab.hunt.evaluate.scores import Score


def score(agent: str, level: float) -> Score:
    seeds = np.zeros(8, dtype=np.int64)
    tenths = np.arange(1.0, 11.0)
    return Score(agent, "", np.full(8, level), seeds, np.full(40, level), (tenths, tenths), 40, 5.0, {})


def test_a_card_is_drawn_with_what_it_has(tmp_path: Path) -> None:
    """Scenarios for visitors have a curve; a scenario without a scale, and one above its reference, can be shown."""
    lines = [
        Line(by_name(name), score("RAND", 1.0), score("NS", top), None, {"a": score("a", 2.5), "b": score("b", 1.5)})
        for name, top in (("visit_pair", 2.0), ("self_play", 1.0), ("host_hare", 3.0))
    ]
    card = ScoreCard("msh_4x4", ["a", "b"], {}, [Block("Scenarios", lines), Block("Teams", lines[1:])])
    card.cross = {name: {other: score(name, 1.0) for other in "ab"} for name in "ab"}
    draw_card(card, tmp_path)
    files = ["scenarios_shares.png", "scenarios_adaptation.png", "teams_shares.png", "cross_play.png"]
    assert list(card.figures.values()) == [f"figures/{file}" for file in files]
    assert all((tmp_path / "figures" / file).stat().st_size > 5_000 for file in files)
