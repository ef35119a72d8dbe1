"""The one exception that means "the input is wrong", as opposed to "the program is wrong"."""

from __future__ import annotations

_NO_ROOM = (
    "allocate memory", "out of memory", "not enough memory", "array is too big", "dimension exceeded",
    "calculation overflowed", "multiplication overflow", "too large to convert", "too big to convert",
    "overflow when unpacking", "invalid size, possibly overflow", "negative dimension", "larger than the maximum",
)  # fmt: skip


class UserError(Exception):
    """Bad input, told in one sentence: what is wrong, where, and what would be right.

    The command line prints the sentence and exits with code 2; it never shows a traceback for it.
    Raise it before any work starts, and never after something on disk was changed for the worse.
    """


def asks_too_much(error: BaseException) -> bool:
    """Whether this is how a library says that nothing of such a size fits into memory or into its counters."""
    said = str(error).lower()
    return isinstance(error, MemoryError) or any(words in said for words in _NO_ROOM)
