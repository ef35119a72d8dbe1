"""Options of samples that contradict each other."""

import numpy as np
import pytest

from marlab.lab.errors import UserError
from marlab.market.rules.l1 import L1Options
from marlab.market.samples.extract import extract, with_goals
from marlab.market.samples.options import SampleOptions
from tests.market.sample_tools import tracked_logs

LOGS = tracked_logs()


def test_options_that_contradict_each_other_are_refused():
    with pytest.raises(UserError, match="include_exogenous of L1 and of the features differ"):
        SampleOptions(l1=L1Options(include_exogenous=True))
    with pytest.raises(UserError, match="max_shift is -1"):
        SampleOptions(max_shift=-1)
    with pytest.raises(ValueError, match="goals for 14 days"):
        with_goals(extract(LOGS[0], SampleOptions()), np.zeros((3, 16)))
