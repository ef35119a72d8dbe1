"""Hostile values, and ways to damage a file: pure functions of a random generator."""

from __future__ import annotations

import json
import random
import string
from typing import Any

WORDS = (
    "", " ", "nan", "NaN", "inf", "-inf", "1e999", "-1", "0", "1", "2", "-0.0", "0.5", "1e-320", "1e308", "0x10",
    "1_0", "9" * 30, "-" + "9" * 30, "9" * 5000, str(2 ** 31), str(2 ** 63), str(2 ** 63 - 1), str(-2 ** 63), "true",
    "false", "None", "none", "null", "x", "a" * 300, "ä" * 200, "\u202eabc", "\x1b[31mred\x1b[0m", "\x00", "\n", "\t",
    "a\nb", "\ud800", "\udcff", "😀", "..", ".", "../..", "/dev/null", "folder", "file.txt", "file.json",
    "broken.toml", "empty.toml", "file.txt/below", "missing/deep/path", "folder/", "~", "*", "%s", "{}", "{step}",
    "${HOME}", "a,b", ",", ",,", ":", "::", ":1", "1:", "1:2:3", "1:2,3:4", "0:0", "-1:-1", "1-2", "2-1", "1..2",
    "2..1", "0..99999999999", "..", "=", "a=b", "a=", "=b", "a=b=c", "+", "1+", "+1", "--", "-", "--help-me", "1e6",
    "cpu", "cuda", "cuda:99", "cuda:-1", "cpu:0", "meta", "auto", "serial", "local", "l2", "l2,l3", "all", "best",
    "NS", "NS+2NH", "3NS", "RAND", "WAIT(5)", "WAIT(-1)", "WAIT()", "hold", "random", "msh_4x4", "msh_tiny", "fish/a",
    "a/b/c", "/", "world/name", "ne:slow", "ne:slow:3", "sw:0.5-1.5:24", "ne:nan", "200-260:any", "main:45",
    "16-24:0.03,25+:0.02", "P6", "P1,P9", "small", "quick",
)  # fmt: skip
"""What people, scripts and enemies type where a value should stand."""

TINY = "".join(chr(c) for c in (0x0, 0x7F, 0x85, 0x2028, 0xFEFF))


def word(rng: random.Random) -> str:
    """One value on a command line."""
    kind = rng.random()
    if kind < 0.8:
        return rng.choice(WORDS)
    if kind < 0.9:
        return str(rng.randint(-5, 5) if rng.random() < 0.5 else rng.randint(-(10**12), 10**12))
    if kind < 0.95:
        return repr(rng.uniform(-2, 2) * 10 ** rng.randint(-30, 30))
    letters = string.printable + TINY
    return "".join(rng.choice(letters) for _ in range(rng.randint(1, 40)))


def json_value(rng: random.Random, depth: int = 0) -> Any:
    """Any JSON value, most often of the wrong type."""
    kind = rng.randrange(14 if depth < 3 else 11)
    plain: tuple[Any, ...] = (None, True, False, 0, -1, 1, 2**63, 10**40, 0.5, float("nan"), float("inf"))
    if kind < 9:
        return rng.choice(plain)
    if kind < 11:
        return word(rng)
    if kind == 11:
        return [json_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind == 12:
        return {word(rng): json_value(rng, depth + 1) for _ in range(rng.randrange(4))}
    return -rng.random() * 10 ** rng.randint(-5, 300)


def changed_json(value: Any, rng: random.Random) -> Any:
    """The same tree with one of its values, keys or lengths changed."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        fate = rng.random()
        if fate < 0.15:
            return {k: v for k, v in value.items() if k != key}
        if fate < 0.25:
            return {(word(rng) if k == key else k): v for k, v in value.items()}
        return {k: changed_json(v, rng) if k == key else v for k, v in value.items()}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        if rng.random() < 0.3:
            return value[:at] + value[at + 1 :] if rng.random() < 0.5 else value[: at + 1] + value[at:]
        return [changed_json(v, rng) if i == at else v for i, v in enumerate(value)]
    return json_value(rng)


def json_bytes(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


def damaged_json(data: bytes, rng: random.Random) -> bytes:
    """A JSON file that is wrong in its form or in its content."""
    kind = rng.random()
    if kind < 0.55:
        try:
            return json_bytes(changed_json(json.loads(data), rng))
        except (ValueError, RecursionError):  # it was damaged before
            return damaged(data, rng)
    if kind < 0.65:
        return json_bytes(json_value(rng))
    if kind < 0.75:
        deep = rng.choice((50, 2000, 100_000))
        return b"[" * deep + b"]" * deep if rng.random() < 0.5 else b'{"a":' * deep + b"1" + b"}" * deep
    if kind < 0.8:
        number = b"9" * 5000
        return data.replace(rng.choice((b"0", b"1", b"2")), number, 1)
    return damaged(data, rng)


def damaged_lines(data: bytes, rng: random.Random) -> bytes:
    """A JSONL file with some wrong lines."""
    lines = data.splitlines()
    for _ in range(rng.randint(1, 3)):
        line = damaged_json(rng.choice(lines), rng) if lines else json_bytes(json_value(rng))
        at = rng.randint(0, len(lines))
        lines[at : at + rng.randint(0, 1)] = [line]
    return b"\n".join(lines) + (b"\n" if rng.random() < 0.5 else b"")


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Any file with bits flipped, cut short, or bytes lost, doubled or put in."""
    if not data:
        return rng.randbytes(rng.randint(1, 30))
    kind, at = rng.random(), rng.randrange(len(data))
    if kind < 0.4:
        changed = bytearray(data)
        for _ in range(rng.choice((1, 1, 1, 3, 30))):
            changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return bytes(changed)
    if kind < 0.6:
        return data[:at]
    if kind < 0.7:
        return data[:at] + rng.randbytes(rng.randint(1, 40)) + data[at:]
    if kind < 0.8:
        return data[:at] + data[at + rng.randint(1, 40) :]
    if kind < 0.9:
        end = bytearray(data)  # archives and Parquet keep their index at the end
        for _ in range(rng.choice((1, 1, 4))):
            end[-rng.randint(1, min(len(data), 400))] = rng.randrange(256)
        return bytes(end)
    return rng.choice((b"", b"\x00" * len(data), b"\xff\xfe", data + data, rng.randbytes(len(data) % 5000)))
