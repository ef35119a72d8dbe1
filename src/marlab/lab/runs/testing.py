"""Checks that every trainer's tests share; also for people who add a world of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from marlab.lab.runs.checkpoint import load_checkpoint, save_checkpoint
from marlab.lab.runs.trainer import Halfway, Trainer


def assert_same(a: Any, b: Any, where: str = "state") -> None:
    """Two nested structures of tensors and plain values are equal to the last bit (NaN equals NaN)."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        assert a.dtype == b.dtype and a.shape == b.shape, f"{where}: {a.dtype} {a.shape} against {b.dtype} {b.shape}"
        same = (a == b) | ((a != a) & (b != b))
        assert bool(same.all()), f"{where}: {int((~same).sum())} of {a.numel()} elements differ"
    elif isinstance(a, Mapping) and isinstance(b, Mapping):
        assert list(a) == list(b), f"{where}: keys {list(a)} against {list(b)}"
        for key in a:
            assert_same(a[key], b[key], f"{where}.{key}")
    elif isinstance(a, list | tuple) and isinstance(b, list | tuple):
        assert len(a) == len(b), f"{where}: length {len(a)} against {len(b)}"
        for i, (x, y) in enumerate(zip(a, b)):
            assert_same(x, y, f"{where}[{i}]")
    elif isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        assert math.isnan(b), f"{where}: {a} against {b}"
    else:
        assert a == b, f"{where}: {a!r} against {b!r}"


def assert_resume_equal(
    make: Callable[[], Trainer], first: int, second: int, folder: Path, ignore: tuple[str, ...] = ()
) -> None:
    """`first + second` units in one go equal `first` units, a checkpoint on disk, and `second` units of a new object.

    Compares every metric of the second part (apart from those whose name starts with a word of `ignore`, such as
    timings) and the whole final state. Exact on the CPU with a fixed number of threads.
    """
    through = make()
    for _ in range(first):
        through.iterate()
    expected = [_without(through.iterate(), ignore) for _ in range(second)]

    before = make()
    for _ in range(first):
        before.iterate()
    save_checkpoint(folder / "resume.pt", "test", before.step, before.state_dict())
    after = make()
    after.load_state_dict(load_checkpoint(folder / "resume.pt", "test").state)
    assert after.step == first, f"the checkpoint continues at step {after.step}, expected {first}"
    found = [_without(after.iterate(), ignore) for _ in range(second)]

    assert_same(expected, found, "metrics")
    assert_same(through.state_dict(), after.state_dict())


def assert_halfway_equal(
    make: Callable[[], Any], asks: int, units: int, folder: Path, ignore: tuple[str, ...] = ()
) -> None:
    """`units` in one go equal the same units of a trainer that stops inside one of them, when it has asked `asks`
    times whether it should, is saved there, and goes on as a new object."""
    through = make()
    expected = [_without(through.iterate(), ignore) for _ in range(units)]
    before, left, found = make(), iter([False] * asks), []
    before.should_stop = lambda: next(left, True)
    try:
        for _ in range(units):
            found.append(_without(before.iterate(), ignore))
    except Halfway:
        pass
    else:
        raise AssertionError(f"it asked fewer than {asks} times in {units} units")
    save_checkpoint(folder / "halfway.pt", "test", before.step, before.state_dict())
    after = make()
    after.load_state_dict(load_checkpoint(folder / "halfway.pt", "test").state)
    found += [_without(after.iterate(), ignore) for _ in range(units - len(found))]
    assert_same(expected, found, "metrics")
    assert_same(through.state_dict(), after.state_dict())


def _without(values: Mapping[str, Any], ignore: tuple[str, ...]) -> dict[str, Any]:
    return {k: v for k, v in values.items() if not k.startswith(ignore)} if ignore else dict(values)
