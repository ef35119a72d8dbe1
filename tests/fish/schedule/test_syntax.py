"""The small list languages of the flags."""

from __future__ import annotations

import pytest

from marlab.fish.schedule.syntax import keyed, number, numbers, whole, wholes, word, words
from marlab.lab.errors import UserError


def test_lists() -> None:
    assert words(" a, b,,c ") == ["a", "b", "c"] and words("") == []
    assert numbers("0.5, 1", "f") == (0.5, 1.0) and wholes("4,5", "f") == (4, 5)
    assert keyed("3:0.76, 4:0.78", "f", whole) == {3: 0.76, 4: 0.78}
    assert keyed("ne:0.1", "f", word) == {"ne": 0.1} and keyed("", "f", number) == {}


@pytest.mark.parametrize(
    ("read", "says"),
    [
        (lambda: numbers("a", "flag"), "flag contains 'a', expected a number"),
        (lambda: numbers("nan", "flag"), "finite"),
        (lambda: wholes("1.5", "flag"), "whole number"),
        (lambda: keyed("3", "flag", whole), "pairs"),
        (lambda: keyed("3:1,3:2", "flag", whole), "twice"),
        (lambda: keyed(":1", "flag", word), "without a name"),
    ],
)
def test_errors_name_the_flag(read: object, says: str) -> None:
    with pytest.raises(UserError, match=says) as error:
        read()  # type: ignore[operator]
    assert str(error.value).startswith("flag")
