"""As much of the package triton as the fish kernels use, on numpy, so that they run where there is no GPU.

One program after the other, every value a float32 (or integer) array: what is shown is that the kernels compute what
the eager functions do. That Triton compiles them is for a machine that has it.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

OURS = ("marlab.fish.sea.fused", "marlab.fish.sea.kernel_motion", "marlab.fish.sea.kernel_senses")
LAUNCH = ("num_warps", "enable_fp_fusion")
PROGRAM = [0]


class Value(np.ndarray):
    """An array that stays one with no dimension left, and knows Triton's cast."""

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return np.asarray(array).view(Value)

    def to(self, dtype: Any) -> Any:
        return self.astype(dtype)


class Pointer:
    def __init__(self, memory: np.ndarray, offset: Any = 0) -> None:
        self.memory, self.offset = memory, offset

    def __add__(self, more: Any) -> Pointer:
        return Pointer(self.memory, np.asarray(self.offset) + np.asarray(more))

    def __sub__(self, less: int) -> Pointer:
        return self + -less


def value(array: Any) -> Any:
    array = np.asarray(array)
    return (array.astype(np.float32) if array.dtype == np.float64 else array).view(Value)


def load(pointer: Pointer, mask: Any = None, other: Any = 0) -> Any:
    if mask is None:
        return np.asarray(pointer.memory[pointer.offset]).view(Value)
    at = np.where(mask, pointer.offset, 0)
    return np.where(mask, pointer.memory[at], np.asarray(other, pointer.memory.dtype)).view(Value)


def store(pointer: Pointer, new: Any, mask: Any = True) -> None:
    at, new, mask = np.broadcast_arrays(pointer.offset, np.asarray(new), np.asarray(mask))
    pointer.memory[at[mask]] = new[mask]


def atomic_add(pointer: Pointer, new: Any) -> None:
    pointer.memory[pointer.offset] += np.asarray(new)


def pointer_to(argument: Any) -> Any:
    if not isinstance(argument, torch.Tensor):
        return argument
    assert argument.storage_offset() == 0
    size = argument.untyped_storage().nbytes() // argument.element_size()
    return Pointer(argument.as_strided((size,), (1,)).numpy())


class Kernel:
    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __getitem__(self, grid: tuple[int]) -> Any:
        def run(*args: Any, **kwargs: Any) -> None:
            numbers = {name: v for name, v in kwargs.items() if name not in LAUNCH}
            for program in range(grid[0]):
                PROGRAM[0] = program
                self.function(*map(pointer_to, args), **numbers)

        return run


def language() -> types.ModuleType:
    tl = types.ModuleType("triton.language")
    vars(tl).update(
        constexpr=lambda number: number, int32=np.int32, int64=np.int64, float32=np.float32, float64=np.float64,
        program_id=lambda axis: np.asarray(PROGRAM[axis]).view(Value), static_range=range, load=load, store=store,
        atomic_add=atomic_add, arange=lambda low, high: value(np.arange(low, high, dtype=np.int32)),
        zeros=lambda shape, dtype: value(np.zeros(shape, dtype)),
        full=lambda shape, number, dtype: value(np.full(shape, number, dtype)),
        where=lambda mask, a, b: value(np.where(mask, a, b)), minimum=lambda a, b: value(np.minimum(a, b)),
        maximum=lambda a, b: value(np.maximum(a, b)), sqrt_rn=lambda a: value(np.sqrt(a)),
        cos=lambda a: value(np.cos(a)), sin=lambda a: value(np.sin(a)),
        rsqrt=lambda a: value(np.float32(1) / np.sqrt(a)), div_rn=lambda a, b: value(np.float32(a) / np.float32(b)),
        sum=lambda a, axis: value(np.sum(a, axis)), min=lambda a, axis: value(np.min(a, axis)),
    )  # fmt: skip
    return tl


@contextmanager
def installed() -> Iterator[None]:
    """The package triton is this one; the fish kernels are imported anew."""
    triton = types.ModuleType("triton")
    tl = language()
    vars(triton).update(jit=Kernel, language=tl, next_power_of_2=lambda n: 1 << (n - 1).bit_length())
    names = ("triton", "triton.language", *OURS)
    before = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    sys.modules |= {"triton": triton, "triton.language": tl}
    try:
        yield
    finally:
        for name in names:
            sys.modules.pop(name, None)
        sys.modules |= before
