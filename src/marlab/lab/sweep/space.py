"""What `--set` says: values that a setting may have, or a range to draw from.

learning_rate=1e-4,1e-3        two values
n_epochs=2..5                  whole numbers from 2 to 5
learning_rate=1e-5..1e-3:log   with --draws: any number between, evenly over powers of ten
curriculum=["15:12", "20:14,25:8"]   values that hold commas, as JSON
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from marlab.lab.errors import UserError

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
RANGE = re.compile(rf"({NUMBER})\.\.({NUMBER})(:log)?")
MOST_VALUES = 10_000


@dataclass(frozen=True)
class Values:
    """A setting with a list of values: texts as typed, or whatever JSON holds."""

    name: str
    values: tuple[Any, ...]

    def draw(self, rng: np.random.Generator) -> Any:
        return self.values[int(rng.integers(len(self.values)))]


@dataclass(frozen=True)
class Range:
    """A setting with a range of numbers."""

    name: str
    low: float
    high: float
    log: bool
    whole: bool  # both ends are whole numbers: so is what is drawn

    def draw(self, rng: np.random.Generator) -> str:
        """A number as text, so that it is read like one that was typed."""
        if self.log:
            found = math.exp(rng.uniform(math.log(self.low), math.log(self.high)))
        elif self.whole:
            return str(int(rng.integers(int(self.low), int(self.high) + 1)))
        else:
            found = rng.uniform(self.low, self.high)
        return str(round(found)) if self.whole else f"{found:.4g}"


Axis = Values | Range


def parse_axis(text: str) -> Axis:
    """One `--set`; refuses what cannot be read."""
    name, equals, given = text.partition("=")
    name = name.strip().removeprefix("--").replace("-", "_")
    if not equals or not name or not given.strip():
        raise UserError(f"--set is '{text}', expected NAME=VALUE or NAME=VALUE,VALUE, such as learning_rate=1e-4,1e-3.")
    found = RANGE.fullmatch(given.strip())
    if found:
        return _range(name, text, *found.groups())
    if given.lstrip().startswith("["):
        return Values(name, _unique(name, _json(text, given)))
    parts = [part.strip() for part in given.split(",")]
    if "" in parts:
        raise UserError(f"--set is '{text}', where a value is missing between commas.")
    return Values(name, _unique(name, parts))


def _range(name: str, text: str, low: str, high: str, log: str | None) -> Range:
    a, b = float(low), float(high)
    if not (math.isfinite(a) and math.isfinite(b) and a < b) or (log and a <= 0):
        need = "two positive numbers, the smaller one first" if log else "two numbers, the smaller one first"
        raise UserError(f"--set is '{text}', expected {need}.")
    return Range(name, a, b, bool(log), all(re.fullmatch(r"[+-]?\d+", end) for end in (low, high)))


def _json(text: str, given: str) -> list[Any]:
    try:
        values = json.loads(given)
    except (ValueError, RecursionError):
        raise UserError(f"--set is '{text}', whose list of values is not JSON.") from None
    if not isinstance(values, list) or not values:
        raise UserError(f"--set is '{text}', expected one value or more in the list.")
    return [tuple(value) if isinstance(value, list) else value for value in values]


def _unique(name: str, values: Sequence[Any]) -> tuple[Any, ...]:
    found = tuple(dict.fromkeys(str(value) for value in values))
    if len(found) < len(values):
        raise UserError(f"--set {name} names a value twice.")
    return tuple(values)


def check_axes(axes: Sequence[Axis], draws: int | None) -> None:
    """Names do not repeat, and ranges of fractions are drawn from."""
    names = [axis.name for axis in axes]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UserError(f"--set names {twice} twice; give all its values together: --set {twice}=A,B.")
    for axis in axes:
        if isinstance(axis, Range) and draws is None and (axis.log or not axis.whole):
            raise UserError(f"--set {axis.name} is a range of numbers; say how many to draw with --draws.")


def grid(axes: Sequence[Axis]) -> Iterator[dict[str, Any]]:
    """Every combination, the last setting changing fastest."""
    lists = [_listed(axis) for axis in axes]
    size = math.prod(len(values) for values in lists)
    if size > MOST_VALUES:
        raise UserError(f"The grid has {size} settings, at most {MOST_VALUES} are possible; use --draws.")
    for values in itertools.product(*lists):
        yield dict(zip((axis.name for axis in axes), values))


def _listed(axis: Axis) -> Sequence[Any]:
    if isinstance(axis, Values):
        return axis.values
    return [str(number) for number in range(int(axis.low), int(axis.high) + 1)]


def drawn(axes: Sequence[Axis], draws: int, seed: int) -> Iterator[dict[str, Any]]:
    """Random combinations; more draws with the same seed begin with the same ones."""
    for number in range(draws):
        rng = np.random.default_rng([seed, number])
        yield {axis.name: axis.draw(rng) for axis in axes}


def parse_seeds(text: str) -> tuple[int, ...]:
    """Seeds such as 0..4 or 1,5,7."""
    found = re.fullmatch(r"(\d+)\.\.(\d+)", text.strip())
    try:
        seeds = range(int(found[1]), int(found[2]) + 1) if found else [int(part) for part in text.split(",")]
    except ValueError:
        seeds = []
    if not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds) or len(seeds) > MOST_VALUES:
        raise UserError(f"--seeds is '{text}', expected different whole numbers such as 0..4 or 1,5,7.")
    return tuple(seeds)


def shown(values: Mapping[str, Any]) -> str:
    """A setting for people."""
    return ", ".join(f"{name}={value}" for name, value in values.items()) or "default"
