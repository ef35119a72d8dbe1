"""Settings of probes and evaluations."""

from __future__ import annotations

import pytest

from marlab.fish.measure.config import EvalConfig, MeasureConfig
from marlab.lab.errors import UserError


def test_when_probes_are_due() -> None:
    assert [i for i in range(1, 13) if MeasureConfig(multi_eval_interval=4).probe_due(i)] == [4, 8, 12]
    assert not MeasureConfig(multi_eval_interval=0).probe_due(4)
    assert not MeasureConfig(multi_eval_interval=4, eval_multi_fish=1).probe_due(4)


def test_refused() -> None:
    with pytest.raises(UserError, match="Name a checkpoint"):
        EvalConfig()
    with pytest.raises(UserError, match="fish is 0"):
        EvalConfig("a.pt", fish=0)
    with pytest.raises(UserError, match="an episode ends after 500 steps"):
        MeasureConfig(video_max_steps=501)
