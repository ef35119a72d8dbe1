"""The table of variants: every ablation leaves out exactly one thing."""

from __future__ import annotations

from dataclasses import fields
from typing import get_args

from marlab.hunt.planner.variants import VARIANTS, Variant, VariantName


def differences(a: Variant, b: Variant) -> set[str]:
    return {field.name for field in fields(Variant) if getattr(a, field.name) != getattr(b, field.name)}


def test_every_name_has_its_row() -> None:
    assert set(VARIANTS) == set(get_args(VariantName))


def test_ablations_leave_out_one_thing() -> None:
    full = VARIANTS["hop"]
    assert differences(full, VARIANTS["wo-inter"]) == {"inter"}
    assert differences(full, VARIANTS["wo-intra"]) == {"intra"}
    assert differences(full, VARIANTS["direct-om"]) == {"goals"}
    assert differences(VARIANTS["hopplus-mcts"], VARIANTS["hopplus-mcts-wm"]) == {"world_model"}
    assert differences(VARIANTS["mcts-random"], VARIANTS["mcts-self"]) == {"coplayers"}
