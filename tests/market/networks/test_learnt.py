"""What a network learnt with is told, or it is not used."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from marlab.lab.config import to_dict
from marlab.lab.errors import UserError
from marlab.market.networks.learnt import learnt_with
from marlab.market.rules.features import FeatureOptions
from marlab.market.rules.l1 import L1Options

TOLD = {"l1": to_dict(L1Options(rules="economic")), "features": to_dict(FeatureOptions())}


def test_options_of_the_samples_are_told() -> None:
    told = learnt_with("a.npz", SimpleNamespace(data=TOLD, options={"horizon": 40, "d_partner": 0}))
    assert told == (L1Options(rules="economic"), FeatureOptions())


def test_who_does_not_tell_or_does_not_fit_is_refused() -> None:
    with pytest.raises(UserError, match="do not say with which L1"):
        learnt_with("a.npz", SimpleNamespace(data={"l1": TOLD["l1"]}, options={}))
    with pytest.raises(UserError, match="have d_partner 3, but the features they name have 0"):
        learnt_with("a.npz", SimpleNamespace(data=TOLD, options={"d_partner": 3}))
