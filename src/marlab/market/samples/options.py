"""What samples look like: the options that decide it, and the sizes that follow. Loads without torch and pyarrow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple

from marlab.lab.config import from_dict
from marlab.market.rules import features
from marlab.market.rules.features import FeatureOptions
from marlab.market.rules.l1 import L1Options
from marlab.market.rules.partners import EXTRA_SIZE, PARTNER_SIZE

GoalSource = Literal["none", "v2", "l2"]
"""Goals told to L3 and L4: zeros, what the expert did that day, or the prediction of a trained L2."""
BACKFILL_BATCH = 1024
"""Days in one forward pass of L2 that fills in goals."""


class Sizes(NamedTuple):
    """What the shapes of cells depend on: the feature options."""

    horizon: int = 40
    static: int = 12
    temporal: int = 10
    extra: int = 0  # with the option `extra`: further numbers of the factory,
    partner: int = 0  # and statistics of the partner


@dataclass(frozen=True)
class SampleOptions:
    """How samples are made; stored in every dataset."""

    l1: L1Options = field(default_factory=L1Options)
    features: FeatureOptions = field(default_factory=FeatureOptions)

    @property
    def sizes(self) -> Sizes:
        """Shapes of the arrays that these options lead to."""
        extra = (EXTRA_SIZE, PARTNER_SIZE) if self.features.extra else (0, 0)
        return Sizes(self.features.horizon, features.STATIC_SIZE, self.features.channels, *extra)


def stored_options(stored: Mapping[str, Any], where: str) -> SampleOptions | None:
    """The options that a set of samples or a network learnt with, from what is stored with it; None if nothing is."""
    if not all(isinstance(stored.get(part), Mapping) for part in ("l1", "features")):
        return None
    names = {f.name for f in fields(SampleOptions)}
    return from_dict(SampleOptions, {key: value for key, value in stored.items() if key in names}, where)
