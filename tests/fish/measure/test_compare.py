"""Policies side by side: pairing, shares of the possible, and the sentence at the end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from marlab.fish.measure.compare import EvalReport, Score, compare, ladder, rivals
from marlab.fish.measure.policies import scripted
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.seas import SEAS
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.verdict import texts

CPU, CFG = torch.device("cpu"), SeaConfig(num_fish=6, include_neighbor_features=False)


def score(*deaths: list[int]) -> Score:
    table = np.array(deaths)
    return Score((table < 0).mean(axis=1), table)


REPORT = EvalReport(
    {"policy": score([-1, -1, 5, -1], [-1, -1, -1, -1]), "sidestep": score([-1, 1, 5, -1], [-1, -1, -1, 9])},
    doomed=np.array([1, 0]),
    bounds=(0.8, 0.9),
    arenas=(7, 11),
)


def test_shares_and_paired_difference() -> None:
    assert REPORT.saved_share("policy") == 0.875 / 0.9
    assert REPORT.against("sidestep")[0] == 0.25
    line = REPORT.scores["sidestep"].line()
    assert (line["survival"], line["worst_episode"], line["step_one_ratio"]) == (0.625, 0.5, 0.125)
    assert line["survival_after_step_one"] == 5 / 7
    results = REPORT.results()
    assert results["minus side-step"]["value"] == 0.25 and results["survival"]["note"] == "2 x 4 held-out fish"


def test_where_something_hunts_the_difference_is_to_the_best_script() -> None:
    report = EvalReport({**REPORT.scores, "slip": score([-1] * 4, [-1, -1, 5, 5])}, REPORT.doomed, None, REPORT.arenas)
    assert report.results()["minus best script"]["value"] == 0.125
    assert "policy minus slip, paired: +0.1250" in report.text()


def test_cases_are_named_by_what_makes_them_the_same() -> None:
    assert REPORT.cases() == {"arena 7 of v32, 4 fish": 0.75, "arena 11 of v32, 4 fish": 1.0}


def test_words() -> None:
    assert "policy minus side-step, paired: +0.2500" in REPORT.text()
    first, second = texts(REPORT.verdict(7), "runs/fish/a")
    assert first.startswith("The model of iteration 7 beats every script: 0.8750 [")
    assert "of 2 x 4 held-out fish survive, +0.2500 [" in first and "(sidestep)" in first
    assert second == "That is 97.22 % of what any policy could save there (at most 0.9000)."
    alone = EvalReport({"policy": REPORT.scores["policy"]}, REPORT.doomed, None, REPORT.arenas)
    assert texts(alone.verdict(7), "")[0].startswith("The model of iteration 7 was played alone: 0.8750")


@pytest.mark.parametrize(("other", "key"), [(1, "above"), (-1, "below")])
def test_a_clear_difference_is_told(other: int, key: str) -> None:
    live, die = [-1] * 4, [5] * 4
    mine, script = ([live] * 3, [die] * 3) if other > 0 else ([die] * 3, [live] * 3)
    report = EvalReport({"policy": score(*mine), "hold": score(*script)}, np.zeros(3, dtype=np.int64), None, (1, 2, 3))
    assert report.verdict(1)[0].key == f"fish.{key}_script"
    assert "fish.{key}_script:" not in texts(report.verdict(1), "")[0]


@pytest.mark.parametrize(("low", "key"), [(0.00006, "above"), (0.00004, "unclear")])
def test_what_its_digits_do_not_show_is_not_claimed(low: float, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody beats anything by an interval that begins at +0.0000."""
    monkeypatch.setattr(EvalReport, "against", lambda self, script: (0.001, low, 0.002))
    assert REPORT.verdict(1)[0].key == f"fish.{key}_script"


def test_all_policies_meet_the_same_arenas() -> None:
    one = compare(lambda batch: ladder(CPU, ("hold", "random"), batch), CFG, [1, 2], CPU, bound=False)
    other = compare(lambda batch: ladder(CPU, ("hold",), batch), CFG, [1, 2], CPU, bound=False)
    assert one is not None and other is not None
    assert (one.scores["hold"].deaths == other.scores["hold"].deaths).all() and one.bounds is None and one.complete


@pytest.mark.long
def test_batches_are_joined_and_a_cut_leaves_whole_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marlab.fish.measure.compare.ARENAS", 2)

    def played(most: int | None) -> EvalReport | None:
        answers = iter([False] * (10**6 if most is None else most) + [True] * 9)
        with Run.open("toy", CFG, RunOptions(output_dir=tmp_path / str(most))) as run:
            monkeypatch.setattr(run, "should_stop", lambda: next(answers))
            scripts = ("sidestep", "random")
            return compare(lambda batch: ladder(CPU, scripts, batch), CFG, [1, 2, 3], CPU, bound=True, run=run)

    whole = played(None)
    assert whole is not None and whole.complete and len(whole.doomed) == 3 and whole.bounds is not None
    for stops_after in (3, 4, 5):  # parts: the first batch is two policies and the ceiling
        cut = played(stops_after - 1)
        assert cut is not None and not cut.complete and len(cut.doomed) == 2
        for name, scores in cut.scores.items():
            assert (scores.deaths == whole.scores[name].deaths[:2]).all()
    first = played(0)
    assert first is not None and list(first.scores) == ["sidestep"] and first.bounds is None and not first.complete


def test_another_model_beside_the_same_scripts() -> None:
    mine = EvalReport({"policy": score([-1] * 4, [1] * 4, [2] * 4)}, np.array([0, 1, 2]), None, (11, 12, 13))
    both = mine.with_scores_of(REPORT)
    assert both.bounds == REPORT.bounds and len(both.doomed) == 2 and both.against("sidestep")[0] == -0.125


def test_where_a_predator_hunts_nothing_is_said_of_the_possible() -> None:
    cfg = replace(SEAS["pursuit"], num_fish=4, include_neighbor_features=False)
    report = compare(lambda batch: {"policy": scripted("evade")}, cfg, [1, 2], torch.device("cpu"), True)
    assert report is not None and report.bounds is None and report.saved_share("policy") is None
    assert "share of the possible" not in report.results() and "possible at best" not in report.text()
    assert rivals(cfg)[0] == "slip" and rivals(SEAS["v32"])[0] == "sidestep"
