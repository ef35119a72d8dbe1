"""Commands without a run directory stop at safe points too."""

from __future__ import annotations

import os
import signal
import time

import pytest

from marlab.lab.errors import UserError
from marlab.lab.runs.stopping import Stopping, check_time_limit


def test_the_first_signal_asks_and_the_second_does_not_wait() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Stopping() as stopping:
        assert not stopping.should_stop() and not stopping.must_stop() and stopping.exit_code == 0
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopping.should_stop() and stopping.must_stop() and stopping.exit_code == 128 + signal.SIGTERM
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_time_ends_it_before_a_unit_that_would_be_too_long() -> None:
    with Stopping(minutes=1.6 / 60) as stopping:
        for _ in range(2):
            time.sleep(0.25)
            stopping.should_stop()
        assert stopping.should_stop() or stopping.budget.left() > 0.2
        time.sleep(0.2)
        assert stopping.must_stop()


@pytest.mark.parametrize("minutes", [0.0, -1.0, float("inf"), float("nan")])
def test_impossible_limits(minutes: float) -> None:
    with pytest.raises(UserError, match="--time-limit"):
        check_time_limit(minutes)
