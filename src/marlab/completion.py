"""Shell completion: `marlab --completion SHELL` prints a script that shtab makes from the fields behind the flags."""

from __future__ import annotations

import argparse
import importlib
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import shtab

from marlab.lab.config import leaves
from marlab.lab.errors import UserError
from marlab.lab.flags import Described, describe, spellings, word_count
from marlab.lab.help import docs_of


def script(shell: str, table: Mapping[str, Any]) -> str:
    """What a shell has to read once, for all words, flags, choices and presets."""
    if shell not in shtab.SUPPORTED_SHELLS:
        raise UserError(f"--completion is '{shell}', expected one of: {', '.join(shtab.SUPPORTED_SHELLS)}.")
    root = argparse.ArgumentParser("marlab", add_help=False)
    _add_commands(root, table)
    return shtab.complete(root, shell=shell)


def _add_commands(parser: argparse.ArgumentParser, table: Mapping[str, Any]) -> None:
    commands = parser.add_subparsers()
    for word, entry in table.items():
        if isinstance(entry, Mapping):
            _add_commands(commands.add_parser(word, help=" | ".join(entry), add_help=False), entry)
            continue
        module, _, function = entry.target.partition(":")
        command = commands.add_parser(word, help=entry.help, add_help=False)
        _add_flags(command, describe(getattr(importlib.import_module(module), function)))


def _add_flags(parser: argparse.ArgumentParser, command: Described) -> None:
    parser.add_argument("--help", "--help-all", action="store_true", help="explain the flags")
    if command.presets is not None:
        parser.add_argument("--preset", choices=command.presets or None, help="settings to start from")
    plain_words = {name.removesuffix("...") for name in command.positional}
    for leaf in (leaf for part in command.parts for leaf in leaves(part.cls, part.default)):
        about = docs_of(leaf.owner).get(leaf.name, "").partition(". ")[0].replace("%", "%%")  # type: ignore[arg-type]
        inside = (leaf.hint, *typing.get_args(leaf.hint))
        if leaf.flag in plain_words:
            action = parser.add_argument(leaf.flag, nargs="*", help=about)
        elif leaf.hint is bool:
            action = parser.add_argument(*spellings(leaf), dest=leaf.flag, action="store_true", help=about)
        else:
            choices = next((typing.get_args(hint) for hint in inside if typing.get_origin(hint) is Literal), None)
            nargs = word_count(leaf.hint)
            action = parser.add_argument(*spellings(leaf), dest=leaf.flag, nargs=nargs, choices=choices, help=about)
        if leaf.flag in plain_words or Path in inside:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
