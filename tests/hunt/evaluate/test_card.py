"""The score card: its scale, its labels, and how it is read back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from marlab.hunt.evaluate.card import Block, Line, ScoreCard
from marlab.hunt.evaluate.command import HuntEvalConfig
from marlab.hunt.evaluate.run import evaluate, read_card
from marlab.hunt.evaluate.scenarios import SUITE, by_name
from marlab.hunt.evaluate.scores import Score
from marlab.lab.runs.judged import read_cases
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import RunOptions
from marlab.lab.verdict import texts


def test_the_card_knows_its_scale(tmp_path: Path) -> None:
    config = HuntEvalConfig(
        "RAND", ("NS", "NH"), parts=("scenarios", "cross-play", "self-play"), runs=8, steps=120, window=80,
        scenarios=("visit_lone_hunter", "visit_all_hare", "self_play"), layouts=20, episodes=20, device="cpu",
    )  # fmt: skip
    run = evaluate(config, RunOptions(output_dir=tmp_path / "run"), quiet=True)
    card = read_card(run.path)
    lone, hares, _ = card.blocks[0].lines
    for line in (lone, hares):
        share = line.share("RAND")
        assert share is not None and share.value == 0.0
    assert lone.reference.agent == "best response" and lone.reference.mean == 5.0
    best, regret = lone.share("NS"), lone.regret("NS")
    assert best is not None and best.value == 1.0 and regret is not None and regret.value == 0.0
    short = hares.regret("NH")
    assert short is not None and 0.05 < short.value < 0.25  # hare catchers in each other's way
    assert card.cross["NS"]["NH"].mean == 0.0 and card.cross["NH"]["NS"].mean == 1.0
    assert card.self_play["NS"]["over_seeds"]["reward"]["value"] == pytest.approx(2.5)
    text = (run.path / "scorecard.json").read_text()
    assert "NaN" not in text  # JSON knows no such number
    assert json.loads(text)["blocks"][0]["scenarios"][0]["agents"]["NS"]["score"] == 5.0
    assert card.to_dict() == json.loads(text)
    page = (run.path / "scorecard.md").read_text()
    assert len(card.figures) == 3
    assert all((run.path / file).is_file() and file in page for file in card.figures.values())
    assert read_run(run.path).results["NS: self-play reward"]["value"] == pytest.approx(2.5)
    info, cases = read_run(run.path), read_cases(run.path)
    assert info.judged.key(info.results) == "RAND: mean share of the reference"
    by_start = [share for row in cases["NS: mean share of the reference"].values() for share in row.values()]
    assert len(by_start) == 8 and np.mean(by_start) == pytest.approx(card.headline["NS"])
    assert "visit_lone_hunter" in card.text() and "mean share of 3 scenarios, no headline, NS: " in card.text()


def test_a_verdict_says_how_far_and_compares_with_the_next() -> None:
    def of(agent: str, level: float) -> Score:
        tenths = np.arange(1.0, 11.0)
        runs = level + 0.01 * np.arange(8)
        return Score(agent, "", runs, np.zeros(8, dtype=np.int64), np.full(40, level), (tenths, tenths), 40, 5.0, {})

    lines = [
        Line(by_name(name), of("RAND", 1.0), of("NS", 3.0), None, {"a": of("a", top), "b": of("b", 1.5)})
        for name, top in (("visit_pair", 2.0), ("host_hare", 2.5))
    ]
    card = ScoreCard("msh_4x4", ["a", "b"], {}, [Block("Scenarios", lines)])
    first, second, third = texts(card.verdict(), "run")
    assert first.startswith("a comes 62.5 %") and "over 2 scenarios" in first
    assert second.startswith("It is better than b: +37.5 %") and "visit_pair (50 %)" in third
    assert [sentence.key for sentence in ScoreCard("msh_4x4", ["a"], {}).verdict()] == ["lab.look"]
    assert "mean share of 2 scenarios, no headline, a: 0.625" in card.text() and "no headline" in card.markdown()
    assert card.to_dict()["headline"] == {}
    exact = Line(SUITE[0], of("RAND", 1.0), of("best response", 3.0), None, {"a": of("a", 2.0), "b": of("b", 2.0)})
    suite = [exact, *(replace(lines[1], scenario=scenario) for scenario in SUITE[1:])]
    card = ScoreCard("msh_4x4", ["a", "b"], {}, [Block("Scenarios", suite)])
    assert "headline, a: 0.738 of the way" in card.text() and "; 0.500 in the 1 whose reference is exact" in card.text()
    assert "no headline" not in card.text() + card.markdown()
    assert card.to_dict()["headline"].keys() == {"a", "b"}
