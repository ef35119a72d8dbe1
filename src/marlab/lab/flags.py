"""Command-line flags made from config dataclasses. The only module that needs tyro."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, make_dataclass
from typing import Annotated, Any, Generic, TypeVar

from marlab.lab.config import Folders, Preset, check_values, from_dict, has_groups, leaves, load_preset, preset_files
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
    words = _lead_words(words, positional, prog)
    config = _made(cls, None, _tyro(_flat_class(cls, None), words, prog))
    check_values(config)
    return config


def parse_run(
    cls: type[C], argv: Sequence[str], *, prog: str, presets: Folders = None, positional: Sequence[str] = (),
    old: OldFlags | None = None, base: C | None = None,
) -> Parsed[C]:  # fmt: skip
    """Make a config and its run options from `--preset NAME|FILE` and flags; flags override the preset.

    `base`: a config whose values hold where no flag says otherwise, in place of a preset.
    """
    words = _translate(list(argv), old or OldFlags(), prog)
    name, words = take_flag(words, "--preset", "the name of a preset or a TOML file", prog)
    preset = load_preset(name, presets) if name else None
    default = from_dict(cls, preset.values, f"preset {preset.name}") if preset else base
    known = list(preset_files(presets))
    _help(words, prog, Part(cls, default), Part(RunOptions), positional=positional, presets=known)
    words = _lead_words(words, positional, prog)
    import tyro

    flat, no_prefix = _flat_class(cls, default), tyro.conf.arg(name="")
    config_field = field() if flat is not cls or default is None else field(default=default)
    command = make_dataclass(
        "Command",
        [
            ("config", Annotated[flat, no_prefix], config_field),
            ("options", Annotated[RunOptions, no_prefix], field(default_factory=RunOptions)),
        ],
    )
    made: Any = _tyro(command, words, prog)
    config = _made(cls, default, made.config)
    check_values(config)
    return Parsed(config, made.options, preset)


def _help(words: Sequence[str], prog: str, *parts: Part, **more: Any) -> None:
    """Print the help that is asked for, if any, and leave."""
    if any(word in HELP_WORDS for word in words):
        print(help_text(prog, parts, everything="--help-all" in words, **more))
        raise SystemExit(0)


def _flat_class(cls: type[Any], default: Any | None) -> type[Any]:
    """A class with every value of the config at its top, for tyro, which would put the name of a group before it."""
    if not has_groups(cls):
        return cls
    values = [(leaf.flag, leaf.hint, _standard(leaf.default)) for leaf in leaves(cls, default)]
    return make_dataclass(cls.__name__, values)


def _standard(value: Any) -> Any:
    return field() if value is MISSING else field(default=value)


def _made(cls: type[C], default: C | None, flat: Any) -> C:
    """The config from what tyro read."""
    if type(flat) is cls:
        return flat
    tables: dict[str, Any] = {}
    for leaf in leaves(cls, default):
        table = tables
        for name in leaf.path[:-1]:
            table = table.setdefault(name, {})
        table[leaf.name] = getattr(flat, leaf.flag)
    return from_dict(cls, tables, "the flags")


def _tyro(cls: type[C], words: list[str], prog: str) -> C:
    import tyro

    said = io.StringIO()
    width = os.environ.get("COLUMNS")
    try:
        os.environ["COLUMNS"] = "1000"  # or an error's first statement would be cut where its line ends
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            return tyro.cli(cls, prog=prog, args=words)
    except SystemExit:
        raise UserError(_one_sentence(said.getvalue(), prog)) from None
    finally:
        os.environ.pop("COLUMNS")
        if width is not None:
            os.environ["COLUMNS"] = width


def _one_sentence(box: str, prog: str) -> str:
    """tyro explains an error in a box of many lines; keep its first statement and its best suggestion."""
    lines = [re.sub(r"[│╭╮╰╯─|]", " ", line).strip() for line in box.splitlines()]
    lines = [line for line in lines if line.strip("-")]
    message = lines[1] if len(lines) > 1 else (lines[0] if lines else "the flags could not be read")
    message = re.sub(
        r"^Error parsing (--\S+): invalid literal for int\(\) with base 10: (.*)$",
        r"\1 is \2, expected a whole number",
        message,
    )
    message = re.sub(
        r"^Error parsing (--\S+): could not convert string to float: (.*)$", r"\1 is \2, expected a number", message
    )
    for i, line in enumerate(lines):
        if line.startswith("Perhaps you meant") and i + 1 < len(lines):
            message += f", did you mean {lines[i + 1].split()[0].rstrip(',')}?"
    return f"{message.rstrip('.')}{'' if message.endswith('?') else '.'} See `{prog} --help`."


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
