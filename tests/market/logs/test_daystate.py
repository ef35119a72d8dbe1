"""Days stack into batches and come out again."""

import numpy as np

from marlab.market.logs.daystate import stack
from marlab.market.rules import l1
from marlab.market.rules.l1 import Caps, L1Options
from tests.market.days import random_days

GUIDE = L1Options()


def test_a_batch_is_made_of_its_days() -> None:
    states = random_days(6, seed=12)
    again = stack(states.take(i) for i in range(6))
    for field, same in zip(states, again):
        np.testing.assert_array_equal(field, same)
    assert isinstance(l1.caps(again, GUIDE), Caps)
