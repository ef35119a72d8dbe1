"""Policies side by side: pairing, shares of the possible, and the sentence at the end."""

from __future__ import annotations

import numpy as np
import torch

from marlab.fish.measure.compare import EvalReport, Score, compare, ladder
from marlab.fish.sea.config import SeaConfig


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


def test_cases_are_named_by_what_makes_them_the_same() -> None:
    assert REPORT.cases() == {"arena 7, 4 fish": 0.75, "arena 11, 4 fish": 1.0}


def test_words() -> None:
    said = REPORT.sentence("best model")
    assert said.startswith("best model: 0.8750 [") and "of 2 x 4 held-out fish survive" in said
    assert said.endswith("the best script (sidestep) saves 0.6250; at most 0.9000 can be saved.")
    assert "policy minus side-step, paired: +0.2500" in REPORT.text()


def test_all_policies_meet_the_same_arenas() -> None:
    cpu, cfg = torch.device("cpu"), SeaConfig(num_fish=6, include_neighbor_features=False)
    policies = ladder(cpu, ("hold", "random"))
    one = compare(policies, cfg, [1, 2], cpu, bound=False)
    other = compare({"hold": policies["hold"]}, cfg, [1, 2], cpu, bound=False)
    assert (one.scores["hold"].deaths == other.scores["hold"].deaths).all() and one.bounds is None
