"""Settings of a planning agent, and what its variant decides."""

from __future__ import annotations

from dataclasses import fields
from typing import get_args

import pytest

from marlab.hunt.others.config import TRAINING_DISCOUNT
from marlab.hunt.planner.config import VARIANTS, MindConfig, PlanConfig, Variant, VariantName
from marlab.lab.errors import UserError


def test_the_variant_decides_what_beliefs_learn_from() -> None:
    assert MindConfig("wo-inter").beliefs.inter is False and MindConfig("wo-intra").beliefs.intra is False
    beliefs = MindConfig("hop").beliefs
    assert beliefs.inter and beliefs.intra and beliefs.discount == TRAINING_DISCOUNT


def test_wrong_settings() -> None:
    with pytest.raises(UserError, match="variant is 'hip'"):
        MindConfig("hip")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="hidden is 0"):
        MindConfig(hidden=0)
    with pytest.raises(UserError, match="gamma is 0"):
        PlanConfig(gamma=0.0)
    with pytest.raises(UserError, match="trees is 0"):
        PlanConfig(trees=0)


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
