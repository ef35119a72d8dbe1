"""Commands without a run directory stop at safe points too."""

from __future__ import annotations

import os
import signal

import pytest

from marlab.lab.errors import UserError
from marlab.lab.runs import budget
from marlab.lab.runs.stopping import Stopping, check_time_limit
from tests.lab.clock import Clock


def test_the_first_signal_asks_and_the_second_does_not_wait() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Stopping() as stopping:
        assert not stopping.should_stop() and not stopping.must_stop() and stopping.exit_code == 0
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopping.should_stop() and stopping.must_stop() and stopping.exit_code == 128 + signal.SIGTERM
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_time_ends_it_before_a_unit_that_would_be_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(budget, "time", clock)
    with Stopping(minutes=1.0) as stopping:
        for _ in range(2):
            clock.now += 25.0
            stopping.should_stop()
        assert stopping.should_stop() and not stopping.must_stop()
        clock.now += 25.0
        assert stopping.must_stop()


def test_a_closed_terminal_is_a_safe_point_and_nohup_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    with Stopping() as stopping:
        os.kill(os.getpid(), signal.SIGHUP)
        assert stopping.should_stop() and stopping.exit_code == 128 + signal.SIGHUP
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Stopping() as stopping:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stopping.should_stop()
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("minutes", [0.0, -1.0, float("inf"), float("nan")])
def test_impossible_limits(minutes: float) -> None:
    with pytest.raises(UserError, match="--time-limit"):
        check_time_limit(minutes)
