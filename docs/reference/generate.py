"""Write the reference pages that are made from the code: python docs/reference/generate.py [FOLDER]

Commands and their flags come from the help of every command, presets from their files, the Python API from the public
names of the worlds and their docstrings. `make docs` calls it; the pages in docs/reference/generated are not tracked.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from marlab.cli import COMMANDS, Command, Table, main

HERE = Path(__file__).parent
PACKAGES = ("market", "fish", "hunt")


def commands(table: Table, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Command]]:
    for word, entry in table.items():
        if isinstance(entry, Command):
            yield (*words, word), entry
        else:
            yield from commands(entry, (*words, word))


def command_pages() -> Iterator[tuple[str, str]]:
    """One page for each world, and one for the commands that serve all of them."""
    everything = list(commands(COMMANDS))
    for group in ("lab", *PACKAGES):
        parts = [f"# Commands: {group}"]
        for words, command in everything:
            if group == (words[0] if words[0] in PACKAGES else "lab"):
                parts.append(f"## marlab {' '.join(words)}\n\n{sentence(command.help)}\n\n```text\n{usage(words)}\n```")
        yield f"commands-{group}.md", "\n\n".join(parts) + "\n"


def usage(words: tuple[str, ...]) -> str:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
        main([*words, "--help-all"])
    return shown.getvalue().strip()


def preset_page() -> str:
    parts = ["# Presets\n\nA preset names what differs from the defaults of its command: `--preset NAME`."]
    source = Path(import_module("marlab").__file__ or "").parent
    for world in PACKAGES:
        parts.append(f"## {world.capitalize()}")
        folder = source / world / "presets"
        for file in sorted(folder.rglob("*.toml")):
            name = file.relative_to(folder).with_suffix("").as_posix()
            parts.append(f"### {world}: {name}\n\n```toml\n{file.read_text(encoding='utf-8').strip()}\n```")
    return "\n\n".join(parts) + "\n"


def python_page() -> str:
    """Every public name of the worlds with its signature, its docstring, and the methods of classes."""
    parts = ["# Python API\n\nThe public names. All others may move between versions."]
    for package in PACKAGES:
        module = import_module(f"marlab.{package}")
        parts.append(f"## marlab.{package}\n\n{prose(module)}")
        for name in module.__all__:
            thing = getattr(module, name)
            parts.append(f"### {package}.{name}\n\n{code(name, thing)}{prose(thing)}")
            if inspect.isclass(thing):
                for word, method in vars(thing).items():
                    if inspect.isfunction(method) and word[0] != "_" and method.__doc__:
                        parts.append(f"#### {package}.{name}.{word}\n\n{code(word, method)}{prose(method)}")
    return "\n\n".join(parts) + "\n"


def code(name: str, thing: object) -> str:
    """The signature, an argument in a line where it is long."""
    if not callable(thing):
        return ""
    shown = re.sub(r"<factory>|<[^<>]* object at 0x[0-9a-f]+>", "...", str(inspect.signature(thing)))
    shown = re.sub(r"\bself(, )?|ForwardRef\('(.*?)'\)", r"\2", shown)
    shown = re.sub(r"(: |-> )(['\"])(.*?)\2(?=[,) ]|$)", r"\1\3", shown).removesuffix(" -> None")
    if len(name + shown) > 100:
        inner, _, after = shown[1:].rpartition(")")
        shown = "(\n    " + re.sub(r", (?=[*\w]+(?:[:,=]|$))", ",\n    ", inner) + f",\n){after}"
    return f"```python\n{name}{shown}\n```\n\n"


def prose(thing: object) -> str:
    """The docstring, with what would be read as HTML made plain."""
    text = inspect.getdoc(thing) or ""
    return re.sub(r"`[^`]*`|<", lambda match: match[0] if match[0] != "<" else "&lt;", text)


def sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def generate(folder: Path) -> None:
    os.environ["COLUMNS"] = "100"  # of the help of commands
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in [*command_pages(), ("presets.md", preset_page()), ("python.md", python_page())]:
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if sys.argv[1:] else HERE / "generated")
