"""Damaged run folders, and every command that looks into them."""

from __future__ import annotations

import random

from marlab.cli import main
from tests.fuzz import stage
from tests.fuzz.guard import Case
from tests.fuzz.values import damaged, damaged_json, damaged_lines, json_bytes, json_value

LOCK = "runs/fish/b/lock"
LINES = tuple(
    """
runs
runs --sort survival
runs --sort survival/mean --reverse
runs --sort duration
runs --find damaged
runs --status interrupted
runs --tag t
runs --compare a b
runs --compare a p --all
runs --abandon b --reason enough
runs --plan fish/new --goal g
note a
note fish/b
note runs/hunt/p
note --all
report
report a --single-file
fish train --preset fish.toml --name b --resume
fish train --preset fish.toml --name b
fish eval a --output-dir e
fish watch a --film w.gif
fish probe runs/fish/b --output-dir e
hunt train --preset ppo.toml --name p --resume
hunt diagnose p --output-dir d --no-figures
hunt eval runs/hunt/p --game msh_4x4
hunt watch p
hunt pretrain vae p
market samples runs/fish/a
market export a
market train --data runs/fish/a
quickstart --name a
""".strip().splitlines()
)


def damage(name: str, data: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.15:
        return damaged(data, rng)
    if name.endswith(".json"):
        return damaged_json(data, rng)
    return damaged_lines(data, rng) if name.endswith(".jsonl") else damaged(data, rng)


def case(seed: int, number: int) -> Case:
    rng = random.Random(f"folders {seed} {number}")
    source = stage.runs()
    line = rng.choice(LINES)
    names = [name for name in stage.files(source) if "/tb/" not in name]
    run = next((part for part in ("fish/a", "fish/b", "hunt/p") if f" {part[-1]} " in f"{line} "), "")
    likely = [name for name in names if run and f"runs/{run}/" in name] or names
    files: dict[str, bytes | None] = {}
    for _ in range(rng.choice((1, 1, 1, 2))):
        name = rng.choice(likely if rng.random() < 0.8 else names)
        fate = rng.random()
        if fate < 0.08:
            files[name] = None
        elif fate < 0.16:
            files[f"{name}/"] = None
        else:
            files[name] = damage(name, (source / name).read_bytes(), rng)
    if rng.random() < 0.1:
        files[LOCK] = json_bytes({"pid": json_value(rng), "host": json_value(rng), "born": json_value(rng)})
    told = f"marlab {line}  # {', '.join(files)}"
    return Case("folders", number, told, lambda: main(line.split()), source, files)
