"""The time limit of a command: units, what is kept back for the ending, parts, and the clock that starts it."""

from __future__ import annotations

import pytest

from marlab.lab.runs import budget as module
from marlab.lab.runs.budget import CLOSING_S, Budget, announce, clock
from tests.lab.clock import Clock


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake = Clock()
    monkeypatch.setattr(module, "time", fake)
    return fake


def work(budget: Budget, time: Clock, unit: float) -> int:
    """Units done until the next one is too long."""
    done = 0
    while not budget.next_unit_is_too_long():
        time.now += unit
        budget.tick()
        done += 1
    return done


def test_without_a_limit_everything_fits(time: Clock) -> None:
    budget = Budget()
    time.now += 1e9
    assert budget.fits(1e12) and not budget.over() and not budget.limited


def test_units_go_on_until_the_next_would_pass_the_limit(time: Clock) -> None:
    budget = Budget(100.0)
    assert work(budget, time, 7.0) == 14  # 98 s: with the closing second there is no room for another
    assert time.now == 198.0 and budget.left() == 100.0 - 98.0 - CLOSING_S


def test_the_limit_is_used_although_the_first_unit_was_slow(time: Clock) -> None:
    budget = Budget(100.0)
    time.now += 40.0
    budget.tick()
    work(budget, time, 1.0)
    assert time.now == 199.0


def test_a_unit_that_is_longer_every_now_and_then_is_expected(time: Clock) -> None:
    budget = Budget(100.0)
    number = 0
    while not budget.next_unit_is_too_long():
        number += 1
        time.now += 10.0 if number % 16 == 0 else 1.0
        budget.tick()
    assert 180.0 < time.now <= 199.0


def test_what_the_ending_needs_is_kept_back_and_used_by_it(time: Clock) -> None:
    budget = Budget(100.0)
    budget.expect("evaluation", 20.0)
    budget.expect("films", 10.0)
    work(budget, time, 1.0)
    assert time.now == 169.0
    with budget.part("evaluation"):
        assert budget.left() == pytest.approx(20.0) and budget.unit() == 0.0  # its units are its own
        work(budget, time, 5.0)
        assert time.now == 189.0 and budget.over() is False and budget.left() == 0.0
    budget.expect("films", 25.0)
    assert not budget.fits(0.0) and budget.expected("films") == 25.0
    with budget.part("films"):
        assert budget.left() == pytest.approx(10.0)


def test_the_clock_starts_before_the_run_is_opened(time: Clock) -> None:
    with clock():
        time.now += 1.5
        assert Budget(60.0).left() == 60.0 - 1.5 - CLOSING_S
        with clock():  # a command that a command calls has its own time
            assert Budget(60.0).left() == 60.0 - CLOSING_S
        assert Budget(60.0).left() == 60.0 - 1.5 - CLOSING_S
    assert Budget(60.0).left() == 60.0 - CLOSING_S


def test_more_than_a_minute_is_announced(time: Clock) -> None:
    said: list[str] = []
    announce(59.0, Budget(), said.append)
    assert said == []
    announce(600.0, Budget(), said.append)
    announce(600.0, Budget(180.0), said.append, "the evaluation")
    assert said == [
        "the rest takes about 10 min at this pace",
        "the evaluation takes about 10 min at this pace; the time limit of 3 min stops it earlier",
    ]


def test_who_begins_slowly_keeps_more_back_for_the_end(time: Clock) -> None:
    """Loading took eight seconds, so unloading may take five; without a clock nothing is known of it."""
    with clock():
        time.now += 8.0
        assert Budget(60.0).left() == pytest.approx(60.0 - 8.0 - 4.8)
        time.now += 100.0
        assert Budget(600.0).closing_s == 10.0
    assert Budget(60.0).left() == pytest.approx(59.0)
