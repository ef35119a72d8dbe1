"""The one exception that means "the input is wrong", as opposed to "the program is wrong"."""

from __future__ import annotations


class UserError(Exception):
    """Bad input, told in one sentence: what is wrong, where, and what would be right.

    The command line prints the sentence and exits with code 2; it never shows a traceback for it.
    Raise it before any work starts, and never after something on disk was changed for the worse.
    """
