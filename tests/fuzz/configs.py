"""Configs from strangers: presets in TOML and stored settings in JSON, with wrong keys, types and values."""

from __future__ import annotations

import importlib
import json
import random
from functools import cache
from typing import Any

from marlab.cli import main
from marlab.lab.command import RunCommand, RunVariants
from marlab.lab.config import check_values, defaults_of, from_dict, leaves, preset_files
from tests.fuzz.guard import Case
from tests.fuzz.values import changed_json, damaged, json_bytes, json_value, word
from tests.pins import commands

NUMBERS = ("nan", "inf", "-inf", "-1", "0", "1", "1e308", "9" * 5000, "9" * 30, "-0.0", "0x10", "1_0", "true", "''")


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


def case(seed: int, number: int) -> Case:
    rng = random.Random(f"configs {seed} {number}")
    words = rng.choice(list(run_commands()))
    return (_preset if rng.random() < 0.5 else _stored)(words, run_commands()[words], number, rng)


def _stored(words: str, command: RunCommand[Any], number: int, rng: random.Random) -> Case:
    """Settings as a run or a checkpoint keeps them."""
    data = defaults_of(command.config)
    for _ in range(rng.randint(1, 2)):
        data = changed_json(data, rng)
    data = json.loads(json_bytes(data))

    def call() -> None:
        if isinstance(data, dict):
            check_values(from_dict(command.config, data, "the stored settings"))

    return Case("configs", number, f"{words}: {str(data)[:200]}", call)


def _preset(words: str, command: RunCommand[Any], number: int, rng: random.Random) -> Case:
    """A preset file and the command that reads it."""
    shipped = list(preset_files(command.presets).values())
    text = rng.choice(shipped).read_bytes() if shipped and rng.random() < 0.5 else b""
    way = rng.random()
    if way < 0.2 and text:
        text = damaged(text, rng)
    elif way < 0.3:
        text += rng.choice(
            (
                b"x = " + b"[" * 50_000,
                b"[[a]]\n" * 3,
                b"[a.b]\n[a]\nb=1\n",
                b"\xff\xfe",
                b"a" * 10**5,
                b"inferred = 3\n",
            )
        )
    else:
        text += b"\n" + b"".join(_line(command, rng) for _ in range(rng.randint(1, 3)))
    line = [*words.split(), "--preset", "p.toml", "--output-dir", "out"]
    if rng.random() < 0.1:
        line.append(word(rng))
    return Case(
        "configs", number, f"{' '.join(line)[:100]}\n{text[-300:]!r}", lambda: main(line), files={"p.toml": text}
    )


def _line(command: RunCommand[Any], rng: random.Random) -> bytes:
    name = rng.choice(leaves(command.config)).flag if rng.random() < 0.9 else word(rng)
    value = rng.choice(NUMBERS) if rng.random() < 0.6 else json.dumps(json_value(rng))
    return f"{name} = {value}\n".encode("utf-8", "replace")
