"""The help of a command, made from its config dataclasses: a short one with what most people change, and all of it.

A config class may name its common fields in `COMMON`; `--help` then shows only those, and `--help-all` the rest. The
text under a field is its explanation. Needs no terminal, so that help comes at once.
"""

from __future__ import annotations

import ast
import inspect
import shutil
import textwrap
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union

from marlab.lab.config import Leaf, leaves

HELP_WORDS = ("-h", "--help", "--help-all")
COLUMN = 36  # where explanations begin
WIDEST = 120
TYPES = {int: "N", float: "X", str: "TEXT", Path: "PATH"}


@dataclass(frozen=True)
class Part:
    """A config class whose fields are flags of the command, and the values that they have when no flag is given."""

    cls: type[Any]
    default: Any | None = None


def help_text(
    prog: str,
    parts: Sequence[Part],
    *,
    positional: Sequence[str] = (),
    presets: Sequence[str] | None = None,
    preset: str | None = None,
    everything: bool = False,
) -> str:
    """What `prog --help` (with `everything`: `prog --help-all`) prints; `presets` is None where there can be none,
    `preset` is the one that holds where none is named."""
    width = min(shutil.get_terminal_size((100, 24)).columns, WIDEST)
    names = [name.removesuffix("...") for name in positional]
    words = [f"{n.upper()} ..." if p.endswith("...") else n.upper() for n, p in zip(names, positional)]
    preset_word = "NAME|FILE" if presets else "FILE"
    choose = [] if presets is None else [f"[--preset {preset_word}]"]
    about = inspect.cleandoc(parts[0].cls.__doc__ or "").partition("\n\n")[0]
    blocks = [f"usage: {' '.join([prog, *words, *choose, '[flags]'])}", textwrap.fill(" ".join(about.split()), width)]
    first = leaves(parts[0].cls, parts[0].default)
    plain = {leaf.flag: leaf for leaf in first if leaf.flag in names}
    if plain:
        rows = [_row(word, _meaning(plain[name]), width) for name, word in zip(names, words)]
        blocks.append("\n".join(["words", *rows]))
    if presets is not None:
        named = f"one of {', '.join(presets)}, or " if presets else ""
        about = f"Settings to start from: {named}a TOML file; flags override them."
        row = _row(f"--preset {preset_word}", f"{about} ({preset})" if preset else about, width)
        blocks.append(f"preset\n{row}")
    hidden = 0
    for part in parts:
        common = None if everything else getattr(part.cls, "COMMON", None)
        entries = [leaf for leaf in leaves(part.cls, part.default) if leaf.flag not in names]
        unknown = set(common or ()) - {leaf.flag for leaf in entries}
        assert not unknown, f"{part.cls.__name__}.COMMON names {unknown}, which are no flags"
        shown = [leaf for leaf in entries if common is None or leaf.flag in common]
        hidden += len(entries) - len(shown)
        for title in dict.fromkeys(["", *(leaf.title for leaf in shown)]):
            rows = [_row(_flag(leaf), _meaning(leaf), width) for leaf in shown if leaf.title == title]
            if rows:
                blocks.append("\n".join([title or getattr(part.cls, "TITLE", "flags"), *rows]))
    if hidden:
        blocks.append(f"`{prog} --help-all` shows {hidden} more flags.")
    return "\n\n".join(blocks)


def _row(left: str, right: str, width: int) -> str:
    lines = textwrap.wrap(right, max(width - COLUMN, 30))
    if len(left) + 4 > COLUMN:
        return "\n".join([f"  {left}", *(" " * COLUMN + line for line in lines)])
    return "\n".join([f"  {left:<{COLUMN - 2}}" + (lines[0] if lines else ""), *(" " * COLUMN + x for x in lines[1:])])


def _flag(leaf: Leaf) -> str:
    head, dot, name = leaf.flag.replace("_", "-").rpartition(".")
    if leaf.hint is bool:
        return f"--{head}{dot}[no-]{name}"
    return f"--{head}{dot}{name} {_kind(leaf.hint)}"


def _kind(hint: Any) -> str:
    """The word that stands for a value of this type."""
    origin, args = typing.get_origin(hint), [a for a in typing.get_args(hint) if a is not type(None)]
    if origin is Literal:
        return "{" + ",".join(str(a) for a in args) + "}"
    if origin in (Union, types.UnionType):
        return "|".join(dict.fromkeys(_kind(a) for a in args))
    if origin is tuple:
        kinds = [_kind(a) for a in args if a is not Ellipsis]
        return f"{kinds[0]} ..." if Ellipsis in args else " ".join(kinds)
    return "on|off" if hint is bool else TYPES.get(hint, "VALUE")


def _meaning(leaf: Leaf) -> str:
    explained = docs_of(leaf.owner).get(leaf.name, "")  # type: ignore[arg-type]  # mypy holds type[Any] for unhashable
    if not leaf.has_default or leaf.default in ("", None, ()):
        return explained
    return f"{explained} ({_shown(leaf.default)})".strip()


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return " ".join(str(x) for x in value)
    return str(value)


@cache
def docs_of(cls: type[Any]) -> dict[str, str]:
    """The text under each field of a dataclass, those that it inherits included."""
    found: dict[str, str] = {}
    for base in reversed([c for c in cls.__mro__ if is_dataclass(c)]):
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        except (OSError, TypeError):  # a class that was made by a program has no source
            continue
        assert isinstance(tree, ast.ClassDef)
        for field, text in zip(tree.body, tree.body[1:]):
            if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
                continue
            if (
                isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
                and isinstance(text.value.value, str)
            ):
                found[field.target.id] = " ".join(text.value.value.split())
    return found
