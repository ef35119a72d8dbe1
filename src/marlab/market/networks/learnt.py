"""What a network learnt with: the part of the contract of weights that needs no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from marlab.lab.config import from_dict
from marlab.lab.errors import UserError
from marlab.market.rules.features import STATIC_SIZE, FeatureOptions
from marlab.market.rules.l1 import L1Options
from marlab.market.rules.partners import EXTRA_SIZE, PARTNER_SIZE


class LearntWith(NamedTuple):
    """What a network must find in play as it found it in its samples."""

    l1: L1Options
    features: FeatureOptions


def learnt_with(where: Path | str, model: Any) -> LearntWith:
    """The options of the samples that a network learnt from; one that does not tell them is refused."""
    data: Any = getattr(model, "data", {})
    if not data.get("l1") or not data.get("features"):
        raise UserError(
            f"The weights {where} do not say with which L1 rules and features they learnt, so nothing can use them "
            "rightly; if you know, add it: marlab.market.guide.add_options(PATH, SampleOptions(...))."
        )
    told = LearntWith(
        from_dict(L1Options, data["l1"], f"the L1 of {where}"),
        from_dict(FeatureOptions, data["features"], f"the features of {where}"),
    )
    _check_sizes(where, model, told.features)
    return told


def _check_sizes(where: Path | str, model: Any, features: FeatureOptions) -> None:
    """A network takes what its features give."""
    extra = (EXTRA_SIZE, PARTNER_SIZE) if features.extra else (0, 0)
    given = {
        "horizon": features.horizon, "d_static": STATIC_SIZE + extra[0], "d_temporal": features.channels,
        "n_buckets": 4, "d_partner": extra[1], "thread_feat_dim": 24, "global_feat_dim": 30,
    }  # fmt: skip
    options: Any = getattr(model, "options", {})
    for name, size in given.items():
        if name in options and options[name] != size:
            raise UserError(f"The weights {where} have {name} {options[name]}, but the features they name have {size}.")
