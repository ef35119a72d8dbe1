"""Command-line flags made from config dataclasses: every field is a flag of a plain argparse parser."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NoReturn, TypeVar

from marlab.lab.config import Folders, Leaf, Preset, check_values, from_dict, leaves, load_preset, preset_files
from marlab.lab.errors import UserError
from marlab.lab.help import HELP_WORDS, Part, help_text
from marlab.lab.runs.run import RunOptions

C = TypeVar("C")


@dataclass(frozen=True)
class OldFlags:
    """What a command does with words from the guides and logs that came before it."""

    renamed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Old flag without dashes -> the words that replace it; a value that follows stays where it is."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Old flag without dashes -> the sentence that says what replaced it."""
    ignored: Mapping[str, str] = field(default_factory=dict)
    """Old flag without dashes that changes nothing here -> why; it is accepted, with a line that says so."""
    preset: str = ""
    """What else the program set whose flags had underscores: without a preset such flags are refused."""


@dataclass(frozen=True)
class Parsed(Generic[C]):
    """A command line of a training command, understood."""

    config: C
    options: RunOptions
    preset: Preset | None


def parse(
    cls: type[C], argv: Sequence[str], *, prog: str, positional: Sequence[str] = (), old: OldFlags | None = None
) -> C:
    """Make `cls` from flags. Leading words that are not flags fill the fields named in `positional`.

    A last name with three dots, such as "runs...", takes all words that are left.
    """
    words = _translate(list(argv), old or OldFlags(), prog)
    _help(words, prog, Part(cls), positional=positional)
    (config,) = _read([Part(cls)], _lead_words(words, positional, prog), prog)
    check_values(config)
    return config


def parse_run(
    cls: type[C], argv: Sequence[str], *, prog: str, presets: Folders = None, positional: Sequence[str] = (),
    old: OldFlags | None = None, base: C | None = None, own_preset: str | None = None,
) -> Parsed[C]:  # fmt: skip
    """Make a config and its run options from `--preset NAME|FILE` and flags; flags override the preset.

    `base`: a config whose values hold where no flag says otherwise, in place of a preset; `own_preset`: the one
    where none is named.
    """
    words = _translate(list(argv), old or OldFlags(), prog)
    asked, words = take_flag(words, "--preset", "the name of a preset or a TOML file", prog)
    name = asked or own_preset
    preset = load_preset(name, presets) if name else None
    default = from_dict(cls, preset.values, f"preset {preset.name}") if preset else base
    parts = [Part(cls, default), Part(RunOptions)]
    known = list(preset_files(presets))
    _help(words, prog, *parts, positional=positional, presets=known, preset=own_preset)
    config, options = _read(parts, _lead_words(words, positional, prog), prog)
    check_values(config)
    return Parsed(config, options, preset)


def _help(words: Sequence[str], prog: str, *parts: Part, **more: Any) -> None:
    """Print the help that is asked for, if any, and leave."""
    if any(word in HELP_WORDS for word in words):
        if _described is not None:
            _described.append(Described(parts, **more))
        else:
            print(help_text(prog, parts, everything="--help-all" in words, **more))
        raise SystemExit(0)


# --- flags to values ----------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """Raises one sentence instead of leaving with a usage text."""

    def error(self, message: str) -> NoReturn:
        message = message.removeprefix("argument ").replace(": expected", " expected")
        more = "; a text that begins with a dash is given as FLAG=TEXT" if "expected one argument" in message else ""
        raise UserError(f"{message}{more}. See `{self.prog} --help`.")


def _read(parts: Sequence[Part], words: Sequence[str], prog: str) -> list[Any]:
    """One config for each part, with the values that the flags give and otherwise those of its default."""
    given, extra = _parser(parts, prog).parse_known_args([_hyphens(word) for word in words])
    flags = {f"--{leaf.flag.replace('_', '-')}": leaf for part in parts for leaf in leaves(part.cls, part.default)}
    if extra:
        word = extra[0].partition("=")[0]
        if not word.startswith("-"):
            raise UserError(f"'{word}' is one word too many; flags come after plain words. See `{prog} --help`.")
        near = difflib.get_close_matches(word, [spelling for leaf in flags.values() for spelling in spellings(leaf)], 1)
        hint = f", did you mean {near[0]}?" if near else "."
        raise UserError(f"There is no flag {word}{hint} See `{prog} --help`.")
    made: list[Any] = []
    for part in parts:
        tables: dict[str, Any] = {}
        for leaf in leaves(part.cls, part.default):
            if leaf.flag not in given:
                continue
            table = tables
            for name in leaf.path[:-1]:
                table = table.setdefault(name, {})
            table[leaf.name] = _value(leaf.hint, getattr(given, leaf.flag), spellings(leaf)[0], prog)
        made.append(from_dict(part.cls, tables, "the flags", part.default))
    return made


def _parser(parts: Sequence[Part], prog: str) -> _Parser:
    """Every field of the parts as a flag that takes texts; a field without a flag on the line leaves nothing."""
    parser = _Parser(prog, allow_abbrev=False, add_help=False, argument_default=argparse.SUPPRESS)
    for part in parts:
        for leaf in leaves(part.cls, part.default):
            if leaf.hint is bool:
                for spelling, const in zip(spellings(leaf), (True, False)):
                    parser.add_argument(spelling, dest=leaf.flag, action="store_const", const=const)
            else:
                parser.add_argument(spellings(leaf)[0], dest=leaf.flag, nargs=word_count(leaf.hint))
    return parser


def spellings(leaf: Leaf) -> list[str]:
    """--flag, and for a switch --no-flag, where the dot of a table stays in front: --ppo.no-compile."""
    head, dot, name = leaf.flag.replace("_", "-").rpartition(".")
    return [f"--{head}{dot}{no}{name}" for no in (["", "no-"] if leaf.hint is bool else [""])]


def _hyphens(word: str) -> str:
    """Flags may be typed with underscores, as fields are written."""
    if not word.startswith("--"):
        return word
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value


def word_count(hint: Any) -> int | str | None:
    if typing.get_origin(hint) is not tuple:
        return None
    args = typing.get_args(hint)
    return "*" if Ellipsis in args else len(args)


def _value(hint: Any, given: Any, flag: str, prog: str) -> Any:
    """The texts of one flag as a value of its field's type."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is bool:
        return given
    if origin is tuple:
        kinds = args[:1] * len(given) if Ellipsis in args else args
        return tuple(_value(kind, text, flag, prog) for kind, text in zip(kinds, given))
    if origin in (typing.Union, types.UnionType):
        if given == "None" and type(None) in args:
            return None
        (kind,) = (arg for arg in args if arg is not type(None))
        return _value(kind, given, flag, prog)
    if origin is Literal:
        chosen = next((arg for arg in args if str(arg) == given), None)
        if chosen is None:
            near = difflib.get_close_matches(given, [str(arg) for arg in args], 1, cutoff=0.75)
            hint = f"; did you mean {near[0]}?" if near else "."
            known = ", ".join(str(arg) for arg in args)
            raise UserError(f"{flag} is {given!r}, expected one of {known}{hint} See `{prog} --help`.")
        return chosen
    try:
        return hint(given)
    except ValueError:
        expected = {int: "a whole number", float: "a number"}.get(hint, "another value")
        raise UserError(f"{flag} is {given!r}, expected {expected}. See `{prog} --help`.") from None


# --- what completion needs ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Described:
    """What the help of a command is made from."""

    parts: Sequence[Part]
    positional: Sequence[str] = ()
    presets: Sequence[str] | None = None
    preset: str | None = None


_described: list[Described] | None = None
"""Where descriptions go in place of printed help, while somebody asks for them."""


def describe(command: Callable[[list[str]], Any]) -> Described:
    """The fields behind the flags of a command; nothing is printed."""
    global _described
    _described = []
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            command(["--help-all"])
        return _described[-1]
    finally:
        _described = None


# --- plain words and old flags ------------------------------------------------------------------------------


def _lead_words(words: list[str], positional: Sequence[str], prog: str) -> list[str]:
    lead = []
    while words and not words[0].startswith("-"):
        lead.append(words.pop(0))
    many = positional[-1].removesuffix("...") if positional and positional[-1].endswith("...") else None
    single = positional if many is None else positional[:-1]
    rest = lead[len(single) :]
    if rest and many is None:
        takes = " ".join(p.upper() for p in positional) or "no"
        raise UserError(f"'{rest[0]}' is one word too many: {prog} takes {takes} plain words before its flags.")
    for name, word in zip(single, lead):
        words += [_flag(name), word]
    if rest and many is not None:
        if _flag(many) not in words:
            words.append(_flag(many))
        after = words.index(_flag(many)) + 1  # plain words come before those of the flag
        words[after:after] = rest
    return words


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def take_flag(words: Sequence[str], flag: str, value: str, prog: str) -> tuple[str | None, list[str]]:
    """(what follows the last `flag`, the other words), before all flags are known; `value` says what must follow."""
    rest: list[str] = []
    chosen = None
    left = iter(words)
    for word in left:
        name, equals, after = word.partition("=")
        if name != flag:
            rest.append(word)
            continue
        chosen = after if equals else next(left, None)
        if chosen is None:
            raise UserError(f"{flag} needs {value}; see `{prog} --help`.")
    return chosen, rest


def _translate(words: list[str], old: OldFlags, prog: str) -> list[str]:
    """Replace old flags by today's, and refuse those that have no meaning here."""
    renamed = {k.replace("_", "-"): v for k, v in old.renamed.items()}
    refused = {k.replace("_", "-"): v for k, v in old.refused.items()}
    ignored = {k.replace("_", "-"): v for k, v in old.ignored.items()}
    out: list[str] = []
    skipping = False  # the value of a flag that is ignored
    for word in words:
        if skipping and not word.startswith("--"):
            continue
        skipping = False
        flag, equals, value = word.partition("=")
        key = flag[2:].replace("_", "-") if flag.startswith("--") else ""
        if key in refused:
            raise UserError(f"{flag} has no meaning in {prog}: {refused[key]}")
        if key in ignored:
            print(f"{flag} has no effect in {prog}: {ignored[key]}.")
            skipping = not equals
        elif key in renamed:
            out += [*renamed[key], *([value] if equals else [])]
        else:
            out.append(word)
    return out
