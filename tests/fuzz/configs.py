"""Command lines and presets that are right but for one thing, drawn from the fields of every command's settings.

What is wrong is wrong in one place, so that it gets past the first checks: a value out of its range, at the edge of
what fits or in conflict with another setting, in a preset that is otherwise a shipped one, or one word of a line that
works.
"""

from __future__ import annotations

import importlib
import json
import math
import re
import shlex
import tomllib
import types
import typing
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from hypothesis import strategies as st

from marlab.cli import main
from marlab.lab.command import RunCommand, RunVariants
from marlab.lab.config import Leaf, flatten, leaves, preset_files
from tests.fuzz import stage
from tests.fuzz.damage import WORDS
from tests.fuzz.formats import OVER_RUNS
from tests.fuzz.guard import Case
from tests.pins import commands, help_text

NEEDS = {
    "fish eval": "best", "fish suite": "best", "fish school": "shoal", "hunt pretrain vae": "data",
    "hunt pretrain world": "data", "hunt eval": "runs/hunt/p --game msh_4x4", "market samples": "logs",
    "market train": "samples", "market clone": "AS0 PenguinAgent --recorded recorded", "market distill": "rule",
    "market fidelity": "--sellers rule=LitaAgentHRL(mode=heuristic) other=LitaAgentHRL(mode=neural)",
}  # fmt: skip
"""What a command must be given, by its words."""
OTHERS = f"""{OVER_RUNS}
fish starts ne:slow sw:0.5-1.5:24 --count 20 --output-dir out
fish starts --check starts.json
fish watch hold --steps 2 --film w.gif
hunt check --game msh_tiny
hunt watch runs/hunt/p --film w.gif
market export logs --output-dir out
market verify --folder recorded
market configs --count 3 --output-dir out
market new-agent mine.py
market submit mine.py
quickstart --name a
doctor
sweep fish train --preset fish.toml --set learning_rate=0.001,0.01 --seeds 0-1
runs --plan fish/new --goal g"""
FLAG = re.compile(r"(?<![\w-])--[a-z][\w.-]*")
NEVER = {"--background", "--serve", "--help", "--help-all"}
WHOLE = (0, -1, 1, 2, 3, 5, 2**15, 2**31, 2**40, 2**53, 2**63, 10**30)
PARTS = (0.0, -0.0, -1.0, 0.5, 1.0, 1.0000001, 2.0, 1e-320, 1e-8, 1e18, 1e308, math.nan, math.inf, -math.inf)


@cache
def run_commands() -> dict[str, RunCommand[Any]]:
    """Every command that takes a preset, by its words (and variant)."""
    found: dict[str, RunCommand[Any]] = {}
    for words, entry in commands():
        module, _, name = entry.target.partition(":")
        command = getattr(importlib.import_module(module), name)
        if isinstance(command, RunCommand):
            found[" ".join(words)] = command
        elif isinstance(command, RunVariants):
            found |= {f"{' '.join(words[:2])} --variant {value}": c for value, c in command.commands.items()}
    return found


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of the type that a field has: at the edges, beyond them, or only unusual; rarely of another type."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return st.one_of([values(each) for each in args])
    if origin is Literal:
        return st.sampled_from([*args, *args, "x", 0])
    if origin is tuple:
        each = values(args[0])
        lists = st.lists(each, max_size=4) if args[-1] is Ellipsis else st.tuples(*map(values, args)).map(list)
        return st.one_of(lists, lists, each)
    words = st.one_of(st.sampled_from(WORDS), st.sampled_from(("data", "samples", "runs/fish/a", "starts.json", "out")))
    return {
        bool: st.booleans(), int: st.one_of(st.sampled_from(WHOLE), st.integers(-5, 300)),
        float: st.one_of(st.sampled_from(PARTS), st.floats(0, 1), st.integers(-2, 10)),
        str: st.one_of(words, st.text(max_size=9)), Path: words, type(None): st.none(),
    }.get(hint, words)  # fmt: skip


@st.composite
def settings(draw: st.DrawFn) -> tuple[str, dict[str, bytes | None]]:
    """A line and its files: a shipped preset, or the defaults, with one value changed in the preset or by a flag."""
    words = draw(st.sampled_from(sorted(run_commands())))
    command = run_commands()[words]
    shipped = preset_files(command.presets)
    name = draw(st.sampled_from(["", *shipped]))
    table = flatten(tomllib.loads(shipped[name].read_text())) if name else {}
    table.pop("inferred", None)
    leaf: Leaf = draw(st.sampled_from(leaves(command.config)))
    value = draw(values(leaf.hint))
    line = [words, NEEDS.get(words, ""), "--preset p.toml --output-dir out"]
    if draw(st.booleans()):
        table[leaf.flag] = value
    else:
        given = value if isinstance(value, list) else [value]
        flag = leaf.flag.replace("_", "-")
        line.append(f"--{flag}" if value is not False else f"--no-{flag}")
        line += [] if isinstance(value, bool) else [shlex.quote(str(each)) for each in given]
    text = "".join(f"{name} = {_toml(value)}\n" for name, value in table.items() if value is not None)
    return " ".join(line), {"p.toml": text.encode("utf-8", "surrogatepass")}


def _toml(value: Any) -> str:
    return json.dumps(value).replace("NaN", "nan").replace("Infinity", "inf")


@cache
def flags(words: str) -> tuple[str, ...]:
    """The flags of a command, read from its own help."""
    known = max((each for each, _ in commands() if words.split()[: len(each)] == list(each)), key=len)
    return tuple(sorted({*FLAG.findall(help_text((*known, "--help-all")))} - NEVER))


@st.composite
def lines(draw: st.DrawFn) -> tuple[str, dict[str, bytes | None]]:
    """A line that works, with one word replaced or left out, or one flag more."""
    line = draw(st.sampled_from(OTHERS.splitlines()))
    words = line.split()
    at = draw(st.integers(1, len(words)))
    word = shlex.quote(draw(st.one_of(values(str), values(int).map(str), values(float).map(str))))
    if at == len(words) or draw(st.booleans()):
        words += [draw(st.sampled_from(flags(line))), *[word] * draw(st.sampled_from((0, 1, 1, 1, 2)))]
    elif draw(st.integers(0, 3)):
        words[at] = word
    else:
        del words[at]
    return " ".join(words), {}


def case(number: int, drawn: tuple[str, dict[str, bytes | None]]) -> Case:
    line, files = drawn
    told = f"marlab {line[:400]!r}" + "".join(f"\n{text[-200:]!r}" for text in files.values() if text)
    return Case("lines", number, told, partial(main, shlex.split(line)), stage.everything(), files)
