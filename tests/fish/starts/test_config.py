"""How a training asks for hard starts."""

from __future__ import annotations

from typing import Any

import pytest

from marlab.fish.starts.config import HardStartConfig
from marlab.lab.errors import UserError


def test_stages_of_both_spellings() -> None:
    assert HardStartConfig().stages == ()
    two = HardStartConfig(seed_stage_spec="3:a.json|type=ne;2:b.json").stages
    assert [(s.iterations, s.path, s.type, s.label) for s in two] == [
        (3, "a.json", "ne", "stage1"), (2, "b.json", "main", "stage2"),
    ]  # fmt: skip
    [one] = HardStartConfig(seed_replay_path="c.json", seed_prewarm_iterations=4).stages
    assert (one.iterations, one.path) == (4, "c.json")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"override_probability": 1.5}, "tail_override_probability is 1.5"),
        ({"stage_warn_patience": 0}, "tail_stage_warn_patience"),
        ({"seed_replay_path": "a.json"}, "tail_seed_prewarm_iterations"),
        ({"seed_stage_spec": "a.json"}, "tail_seed_stage_spec"),
    ],
)
def test_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        HardStartConfig(**change)
