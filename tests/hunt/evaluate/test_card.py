"""The score card: its scale, its labels, and how it is read back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marlab.hunt.evaluate.command import HuntEvalConfig
from marlab.hunt.evaluate.run import evaluate, read_card, score
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import RunOptions


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
    assert "visit_lone_hunter" in card.text() and "headline, NS" in card.text()


def test_rows_that_use_more_than_learned_models_are_labelled_and_no_headline(hop: Path) -> None:
    config = HuntEvalConfig(
        f"plain={hop}", (f"helped={hop}?rollout=1&simulations=1&trees=1",), parts=("scenarios",), runs=4, steps=36,
        window=36, scenarios=("visit_all_hare",), layouts=0, device="cpu",
    )  # fmt: skip
    card = score(config)
    assert card.uses == {"plain": "", "helped": "rule-based rollouts"}
    assert list(card.headline) == ["plain"]
    assert "helped [rule-based rollouts]" in card.text()
