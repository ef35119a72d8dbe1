"""Three disjoint families of co-players: to train with, to tune on, to score on.

Who is in which is fixed here; the parameters of the scored players (how patient, how noisy, when they change) are drawn
from a seed that is chosen after tuning has ended, so that nothing can have been fitted to them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from marlab.hunt.evaluate.scenarios import Scenario, team

TRAIN = ("NS", "NH")
"""Rules of the offline data and of PPO's guests; planners imagine their guests after them. Learners also meet copies of
themselves."""
TUNE = ("3NS", "3NH", "NS+2NH", "2NS+NH", "3RAND", "NS+NH+RAND", "3MIX(0.5)")
"""Teams on which settings may be chosen."""
KINDS = {
    "reciprocator": "GRIM, TFT", "waiting": "WAIT", "switching": "SWITCH", "noisy": "NOISY", "exploiter": "EXPL",
    "lasting": "KEEP", "follower": "NEAR, SHY", "population": "trained players of other seeds",
}  # fmt: skip
"""Kinds of the scored family, and who plays them."""


def scored(seed: int, populations: Sequence[str] = ()) -> list[Scenario]:
    """The scored scenarios with the parameters of a seed. populations: names of trained players to meet, too."""
    draw = np.random.default_rng(seed)
    strikes, patience, crowd = int(draw.integers(1, 4)), int(draw.integers(2, 8)), int(draw.integers(2, 8))
    leaves, joins, all_leave = (int(t) for t in draw.integers((1, 1, 2), (5, 4, 7)))
    noise, error = (round(float(e), 2) for e in draw.uniform(0.1, 0.35, 2))
    share = round(float(draw.uniform(0.3, 0.7)), 2)
    near, shy = int(draw.integers(1, 4)), round(float(draw.uniform(0.4, 0.8)), 2)
    teams = [
        ("reciprocator", f"GRIM({strikes})+2NH"),
        ("reciprocator", "TFT+2NH"),
        ("reciprocator", f"GRIM({strikes})+TFT+NH"),
        ("waiting", f"WAIT({patience})+2NH"),
        ("waiting", f"3WAIT({crowd})"),
        ("switching", f"SWITCH({leaves})+2NH"),
        ("switching", f"SWITCH({joins},NH)+2NH"),
        ("switching", f"3SWITCH({all_leave})"),
        ("noisy", f"NOISY({noise:g},NS)+2NH"),
        ("noisy", f"NOISY({error:g},NH)+2NH"),
        ("exploiter", "3EXPL"),
        ("exploiter", "EXPL+2NH"),
        ("lasting", f"KEEP({share:g})+2NH"),
        ("lasting", f"3KEEP({share:g})"),
        ("follower", f"NEAR({near})+2NH"),
        ("follower", f"3SHY({shy:g})"),
    ]
    for name in populations:
        teams += [("population", f"3{name}"), ("population", f"{name}+2NH")]
    return [tagged(text, kind) for kind, text in teams]


def tagged(text: str, kind: str) -> Scenario:
    """A team as a scenario of one of the KINDS."""
    plain = team(text)
    return Scenario(plain.name, plain.background, 1, plain.description, (*plain.tags, kind))
