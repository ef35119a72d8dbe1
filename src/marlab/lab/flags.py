"""Command-line flags made from config dataclasses. The only module that needs tyro."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from marlab.lab.config import Preset, defaults_of, flatten, from_dict, load_preset, to_dict
from marlab.lab.errors import UserError
from marlab.lab.runs.run import RunOptions

C = TypeVar("C")


@dataclass(frozen=True)
class OldFlags:
    """What a command does with words from the guides and logs that came before it."""

    renamed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Old flag without dashes -> the words that replace it; a value that follows stays where it is."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Old flag without dashes -> the sentence that says what replaced it."""


@dataclass(frozen=True)
class Parsed(Generic[C]):
    """A command line of a training command, understood."""

    config: C
    options: RunOptions
    preset: Preset | None


def parse(cls: type[C], argv: Sequence[str], *, prog: str, positional: Sequence[str] = ()) -> C:
    """Make `cls` from flags. Leading words that are not flags fill the fields named in `positional`.

    A last name with three dots, such as "runs...", takes all words that are left.
    """
    words = _lead_words(list(argv), positional, prog)
    return _tyro(cls, words, prog, default=None)


def parse_run(
    cls: type[C],
    argv: Sequence[str],
    *,
    prog: str,
    presets: Path | None = None,
    positional: Sequence[str] = (),
    old: OldFlags | None = None,
) -> Parsed[C]:
    """Make a config and its run options from `--preset NAME|FILE` and flags; flags override the preset."""
    words = _translate(list(argv), old or OldFlags(), prog)
    words = _lead_words(words, positional, prog)
    name, words = _take_preset(words, prog)
    preset = load_preset(name, presets) if name else None
    default = from_dict(cls, preset.values, f"preset {preset.name}") if preset else None
    import tyro

    no_prefix = tyro.conf.arg(name="")
    config_field = field(default=default) if default is not None else field(default_factory=cls)
    command = make_dataclass(
        "Command",
        [
            ("config", Annotated[cls, no_prefix], config_field),
            ("options", Annotated[RunOptions, no_prefix], field(default_factory=RunOptions)),
        ],
    )
    known = sorted(p.stem for p in presets.glob("*.toml")) if presets else []
    title = "--preset NAME|FILE starts from a preset" + (f" ({', '.join(known)})" if known else "")
    made: Any = _tyro(command, words, prog, default=None, description=title + "; other flags override it.")
    return Parsed(made.config, made.options, preset)


def _tyro(cls: type[C], words: list[str], prog: str, default: C | None, description: str | None = None) -> C:
    import tyro

    kwargs: dict[str, Any] = {"prog": prog, "args": words, "description": description}
    if default is not None:
        kwargs["default"] = default
    if any(w in ("-h", "--help") for w in words):
        return tyro.cli(cls, **kwargs)  # prints the help and leaves
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            return tyro.cli(cls, **kwargs)
    except SystemExit as leaving:
        if leaving.code in (0, None):
            raise
        raise UserError(_one_sentence(said.getvalue(), prog)) from None


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


def _take_preset(words: list[str], prog: str) -> tuple[str | None, list[str]]:
    rest: list[str] = []
    name = None
    i = 0
    while i < len(words):
        if words[i] == "--preset":
            if i + 1 >= len(words):
                raise UserError(f"--preset needs the name of a preset or a TOML file; see `{prog} --help`.")
            name, i = words[i + 1], i + 2
        elif words[i].startswith("--preset="):
            name, i = words[i].partition("=")[2], i + 1
        else:
            rest.append(words[i])
            i += 1
    return name, rest


def _translate(words: list[str], old: OldFlags, prog: str) -> list[str]:
    """Replace old flags by today's, and refuse those that have no meaning here."""
    renamed = {k.replace("_", "-"): v for k, v in old.renamed.items()}
    refused = {k.replace("_", "-"): v for k, v in old.refused.items()}
    out: list[str] = []
    for word in words:
        flag, equals, value = word.partition("=")
        key = flag[2:].replace("_", "-") if flag.startswith("--") else ""
        if key in refused:
            raise UserError(f"{flag} has no meaning in {prog}: {refused[key]}")
        if key in renamed:
            out += [*renamed[key], *([value] if equals else [])]
        else:
            out.append(word)
    return out


def describe(config: Any) -> str:
    """The resolved config, one `key = value` a line; a star marks what differs from the defaults."""
    standard = flatten(defaults_of(type(config)))
    rows = flatten(to_dict(config)).items()
    return "\n".join(f"{'*' if k not in standard or standard[k] != v else ' '} {k} = {v!r}" for k, v in rows)
