"""Options of samples that contradict each other."""

import numpy as np
import pytest

from marlab.lab.errors import UserError
from marlab.market.rules.features import FeatureOptions
from marlab.market.samples.extract import extract, with_goals
from marlab.market.samples.options import SampleOptions
from tests.market.sample_tools import tracked_logs

LOGS = tracked_logs()


def test_options_that_contradict_each_other_are_refused():
    with pytest.raises(UserError, match="offers is 'all'"):
        SampleOptions(features=FeatureOptions(offers="all"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="goals for 14 days"):
        with_goals(extract(LOGS[0], SampleOptions()), np.zeros((3, 16)))
