"""Families of co-players are disjoint, and scored players are drawn from a seed."""

from __future__ import annotations

import re

from marlab.hunt.evaluate.families import KINDS, TRAIN, TUNE, scored
from marlab.hunt.evaluate.scenarios import check_background, team


def kinds(texts: list[str]) -> set[str]:
    return {re.match(r"[A-Z]+", name).group() for text in texts for name in team(text).background}


def test_no_scored_kind_was_trained_with_or_tuned_on() -> None:
    scenarios = scored(0, ["ppo"])
    check_background(scenarios, ["ppo"])
    new = kinds([s.name for s in scored(0)]) - set(TRAIN)
    assert new == {"GRIM", "TFT", "WAIT", "SWITCH", "NOISY", "EXPL", "KEEP", "NEAR", "SHY"}
    assert not new & kinds(list(TUNE))
    assert {s.tags[-1] for s in scenarios} == set(KINDS)
    assert all(set(s.background) - set(TRAIN) for s in scenarios)  # somebody in every team is a stranger


def test_a_seed_decides_every_parameter() -> None:
    names = [[s.name for s in scored(seed)] for seed in range(4)]
    assert names[0] == [s.name for s in scored(0)] and len({tuple(n) for n in names}) == 4
