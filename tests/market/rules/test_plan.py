"""The day of an own offer, and plans of many factories at once."""

from __future__ import annotations

import numpy as np
import pytest

from marlab.market.rules.plan import FULLEST, NEAREST, NEXT, TODAY, chosen_day, reason_text


def day_for(quantity: float, choice: int, *room: float) -> int:
    return int(chosen_day(np.array([float(quantity)]), np.array([choice]), np.array([room]))[0])


@pytest.mark.parametrize(
    ("day", "quantity", "found"),
    [
        (TODAY, 2, 0),
        (NEAREST, 2, 0),
        (NEAREST, 10, 2),
        (NEAREST, 12, 2),  # nothing holds twelve: the first of the emptiest
        (NEXT, 2, 1),
        (NEXT, 10, 2),
        (FULLEST, 2, 1),
        (FULLEST, 3, 4),  # the latest of equals
        (FULLEST, 5, 5),
    ],
)
def test_days_with_room(day: int, quantity: int, found: int) -> None:
    assert day_for(quantity, day, 3, 2, 10, 0, 3, 10) == found


def test_without_room_today_a_small_lot_fills_up_another_day() -> None:
    assert day_for(2, TODAY, 0, 10, 4) == 2
    assert day_for(10, NEXT, 10, 4, 4) == 0  # no other day holds it


def test_reasons_are_told_in_the_order_in_which_they_arose() -> None:
    assert reason_text(0) == reason_text(2048) == ""
    assert reason_text(2 + 32 + 256) == "acceptance does not fit; day is full; quantity cut; "
