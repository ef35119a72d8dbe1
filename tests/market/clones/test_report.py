"""Tables as text and as numbers."""

from __future__ import annotations

import json

import numpy as np
import torch

from marlab.market.clones import report
from marlab.market.clones.measure import beside, marginals
from marlab.market.clones.scores import Played, by_position
from marlab.market.vector.clones import network
from tests.market.clone_cases import small_pack
from tests.market.clones.test_fit import scripted


def found() -> dict[str, object]:
    data = scripted(200, 0)
    weights = network.new_weights(1, 8, torch.Generator().manual_seed(0))
    one = Played(("A", "B"), np.array([0, 1]), np.array([1.0, 2.0]), np.array([[1.1, 1.8]]))
    return {
        "about": {"worlds": 3, "days": 150, "decisions": {"A": 200}},
        "held_out_worlds": 1,
        "experts": {"A": beside(weights, data, marginals(data))},
        "scores": {"A": by_position([one, one], "A")},
    }


def test_tables_hold_both_sides() -> None:
    text = report.as_markdown(found())
    assert "3 recorded worlds, 150 days, 200 decisions" in text and "1.000, 1.100" in text and "+0.100" in text


def test_results_are_plain_json() -> None:
    plain = report.plain(found())
    assert (
        json.loads(json.dumps(plain))["scores"]["A"]["first"]["difference"]["value"]
        == plain["scores"]["A"]["first"]["difference"]["value"]
    )
    numbers = report.numbers(found())
    assert abs(numbers["score difference, mean size"] - 0.1) < 1e-9 and numbers["held-out worlds"] == 1
    assert len(report.verdict(found())) == 2
    assert (
        report.verdict({"experts": {}, "scores": {}, "held_out_worlds": 0, "about": {"worlds": 0, "decisions": {}}})
        == []
    )


def test_clones_built_in_agents_and_our_rule_can_be_played() -> None:
    assert report.playable(small_pack()) >= {"Expert0", "RandomStdAgent", "LitaAgentHRL"}
