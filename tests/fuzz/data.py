"""Damaged data: Parquet, npy, JSON and JSONL of logs, samples, collections and start files."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from marlab.cli import main
from tests.fuzz import stage
from tests.fuzz.folders import damage
from tests.fuzz.guard import Case
from tests.fuzz.values import changed_json, json_bytes, word

TRAIN = "--device cpu --l2-epochs 1 --l3-epochs 1 --l4-epochs 1 --output-dir out"
LINES: dict[str, tuple[Callable[[], Path], tuple[str, ...]]] = {
    "hunt": (stage.hunt_data, (
        "hunt pretrain vae data --epochs 2 --vae-epochs 1 --output-dir out --no-overfit-check",
        "hunt pretrain world data --rows 0 --epochs 1 --output-dir out",
        "hunt diagnose data --output-dir out --no-figures",
    )),
    "logs": (stage.market_logs, (
        "market samples logs --output-dir out --engine serial", "market samples logs --agent-name all --output-dir out",
        "market export logs --output-dir out",
    )),
    "trackers": (stage.trackers, (
        "market samples logs --output-dir out --engine serial --split.val-ratio 0 --split.test-ratio 0",
        "market samples logs --agent-name all --output-dir out",
    )),
    "samples": (stage.samples, (
        f"market train samples {TRAIN}", f"market train samples --phases l2 {TRAIN}",
        f"market train samples --phases l3,l4 --l3-goals v2 {TRAIN}",
    )),
    "starts": (stage.starts, (
        "fish starts --check starts.json", "fish starts --source eval_multi_history.jsonl --output-dir out",
        "fish starts --source starts.json --output-dir out",
        "fish train --preset quickstart --num-envs 2 --tail-seed-stage-spec 2:starts.json|type=ne --output-dir out",
    )),
}  # fmt: skip


MARKET = ("logs", "trackers", "samples")


def case(seed: int, number: int) -> Case:
    """Data of fish and hunt."""
    return _case("data", [kind for kind in LINES if kind not in MARKET], seed, number)


def market_case(seed: int, number: int) -> Case:
    """Logs and samples of the market."""
    return _case("market", MARKET, seed, number)


def _case(family: str, kinds: Sequence[str], seed: int, number: int) -> Case:
    rng = random.Random(f"{family} {seed} {number}")
    kind = rng.choice(kinds)
    make, lines = LINES[kind]
    source, line = make(), rng.choice(lines)
    names = stage.files(source)
    files: dict[str, bytes | None] = {}
    for _ in range(rng.choice((1, 1, 1, 2))):
        name = rng.choice(names)
        fate = rng.random()
        if fate < 0.05:
            files[name] = None
        elif fate < 0.1:
            files[f"{name}/"] = None
        else:
            files[name] = changed_file(name, (source / name).read_bytes(), rng)
    told = f"marlab {line}  # {', '.join(files)}"
    return Case(family, number, told, lambda: main(line.split()), source, files)


def changed_file(name: str, data: bytes, rng: random.Random) -> bytes:
    """Wrong in its form (bytes), or in a well-formed way (tables, arrays and values that do not fit)."""
    if name.endswith(".parquet") and rng.random() < 0.6:
        return changed_table(data, rng)
    if name.endswith(".npy") and rng.random() < 0.6:
        return changed_array(data, rng)
    return damage(name, data, rng)


def changed_table(data: bytes, rng: random.Random) -> bytes:
    """A Parquet file with a column lost, renamed, retyped, or with other values, lengths or words about itself."""
    table = pq.read_table(io.BytesIO(data))
    way, name = rng.randrange(7), rng.choice(table.column_names)
    at = table.column_names.index(name)
    if way == 0:
        table = table.drop_columns([name])
    elif way == 1:
        new = (word(rng) or "x").encode("utf-8", "replace").decode()  # Arrow's own names are UTF-8
        table = table.rename_columns([new if n == name else n for n in table.column_names])
    elif way == 2:
        kind = rng.choice((pa.string(), pa.float64(), pa.int8(), pa.bool_(), pa.list_(pa.int64()), pa.binary()))
        table = table.set_column(at, name, pa.nulls(table.num_rows, kind))
    elif way == 3:
        table = table.slice(0, rng.randrange(table.num_rows + 1))
    elif way == 4:
        table = pa.concat_tables([table, table])
    elif way == 5 and table.schema.metadata:
        table = table.replace_schema_metadata(_changed_words(table.schema.metadata, rng))
    else:
        table = table.set_column(at, name, _other_values(table[name], rng))
    out = io.BytesIO()
    try:
        pq.write_table(table, out)
    except pa.ArrowException:  # a name that no file can hold
        return b""
    return out.getvalue()


def _changed_words(about: dict[bytes, bytes], rng: random.Random) -> dict[bytes, bytes]:
    key = rng.choice(list(about))
    if rng.random() < 0.1:
        return {k: v for k, v in about.items() if k != key}
    try:
        value = json_bytes(changed_json(json.loads(about[key]), rng))
    except ValueError:
        value = b"{"
    return {**about, key: value}


def _other_values(column: Any, rng: random.Random) -> Any:
    values = column.to_pylist()
    wild: tuple[Any, ...] = (-1, 0, 1, 127, None, 2**31 - 1, float("nan"), float("inf"), "x", [])
    for _ in range(rng.choice((1, 1, 5, len(values)))):
        if values:
            values[rng.randrange(len(values))] = rng.choice(wild)
    for kind in (column.type, None):
        try:
            return pa.array(values, kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            continue
    return pa.nulls(len(values), column.type)


def changed_array(data: bytes, rng: random.Random) -> bytes:
    """An .npy file of another length, shape or number type, or with values out of range."""
    array = np.load(io.BytesIO(data), allow_pickle=False)
    way = rng.randrange(7)
    if way == 0:
        array = array[: rng.randrange(len(array) + 1)]
    elif way == 1:
        array = np.concatenate([array, array])
    elif way == 2:
        array = array.astype(rng.choice((np.float64, np.int8, np.complex64, np.str_)))
    elif way == 3:
        array = array[..., None] if rng.random() < 0.5 else array.reshape(-1)
    elif way == 4:
        array = array[:0]
    elif way == 5 and array.size:
        array = array.copy()
        array.reshape(-1)[rng.randrange(array.size)] = rng.choice((-1, 100, 127))
    elif array.size and array.dtype.kind == "f":
        array = np.full_like(array, rng.choice((np.nan, np.inf, 1e30)))
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()
