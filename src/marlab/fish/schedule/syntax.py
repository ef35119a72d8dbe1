"""The small list languages of the fish flags: `4,5,6`, `3:0.76,4:0.78`, `ne:0.13,main:0.10`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from marlab.lab.errors import UserError

K = TypeVar("K", int, float, str)


def words(text: str, separator: str = ",") -> list[str]:
    """The parts between separators, stripped; an empty text has none, and empty parts are dropped."""
    return [part.strip() for part in text.split(separator) if part.strip()]


def number(text: str, flag: str) -> float:
    """One finite number."""
    try:
        value = float(text)
    except ValueError:
        raise UserError(f"{flag} contains '{text}', expected a number.") from None
    if not math.isfinite(value):
        raise UserError(f"{flag} contains '{text}', expected a finite number.")
    return value


def whole(text: str, flag: str) -> int:
    """One whole number."""
    try:
        return int(text)
    except ValueError:
        raise UserError(f"{flag} contains '{text}', expected a whole number.") from None


def numbers(text: str, flag: str) -> tuple[float, ...]:
    """`0.0,0.02,0.04` as floats."""
    return tuple(number(part, flag) for part in words(text))


def wholes(text: str, flag: str) -> tuple[int, ...]:
    """`4,5,6` as integers."""
    return tuple(whole(part, flag) for part in words(text))


def keyed(text: str, flag: str, key: Callable[[str, str], K]) -> dict[K, float]:
    """`key:value` pairs as a dictionary; the same key twice is an error."""
    pairs: dict[K, float] = {}
    for pair in words(text):
        left, colon, right = pair.partition(":")
        if not colon:
            raise UserError(f"{flag} contains '{pair}', expected pairs such as key:value separated by commas.")
        k = key(left.strip(), flag)
        if k in pairs:
            raise UserError(f"{flag} names '{left.strip()}' twice.")
        pairs[k] = number(right.strip(), flag)
    return pairs


def word(text: str, flag: str) -> str:
    """A key of `keyed` that is a word, such as a tail type."""
    if not text:
        raise UserError(f"{flag} contains a pair without a name before the colon.")
    return text
