"""Command lines: every command with its flags and hostile values, through the program's own entry point."""

from __future__ import annotations

import random
import re
from functools import cache

from marlab.cli import main
from tests.fuzz.guard import Case
from tests.fuzz.values import word
from tests.pins import commands, help_text

FILES: dict[str, bytes | None] = {
    "file.txt": b"neither this nor that\n", "file.json": b'{"a": 1}', "empty.toml": b"", "folder/": None,
    "broken.toml": b"seed = = 1\n", "runs/fish/a/": None, "locked/run.json": b"{}",
}  # fmt: skip
"""What lies where the commands are called."""
FLAG = re.compile(r"(?<![\w-])--[a-z][\w.-]*")
OTHERS = ("--", "-q", "-h", "--help", "--help-all", "--version", "--complete", "--completion", "--no-such-flag", "-x")
NEVER = {"--background"}


@cache
def lines() -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """(words of a command, its flags), read from its own help."""
    found = []
    for words, _ in commands():
        text = help_text((*words, "--help-all"))
        found.append((words, tuple(sorted({*FLAG.findall(text)} - NEVER))))
    return found


def case(seed: int, number: int) -> Case:
    rng = random.Random(f"lines {seed} {number}")
    words, flags = rng.choice(lines())
    argv = list(words)
    if rng.random() < 0.02:
        argv = [*argv[: rng.randint(0, len(argv))], word(rng)]
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        argv.append(word(rng))
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        flag = rng.choice(flags) if flags and rng.random() < 0.95 else rng.choice(OTHERS)
        if rng.random() < 0.1:
            argv.append(f"{flag}={word(rng)}")
            continue
        argv.append(flag)
        argv += [word(rng) for _ in range(rng.choice((0, 1, 1, 1, 1, 1, 2)))]
    if rng.random() < 0.3:
        argv += ["--output-dir", word(rng)]
    return Case("lines", number, " ".join(map(repr, argv))[:600], lambda: main(argv), files=FILES)
