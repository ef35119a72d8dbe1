"""One way to write a rule for numpy and for torch: the functions that both libraries have, under one name each.

    xp = namespace(state.day)          # numpy in play and in a submission, torch in the vectorised market
    xp.where(sold > 0, money / sold, 0)

Reductions, sorting and gathering are along the last axis. Numbers of plain Python may stand wherever an array may.
torch is imported only where a tensor comes in.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np


def namespace(*arrays: Any) -> Any:
    """The functions for some arrays: torch's if one of them is a tensor, else numpy's."""
    for array in arrays:
        if type(array).__module__ == "torch":
            return _torch()
    return NUMPY


def _take(values: Any, index: Any) -> Any:
    """Entries [...] of `values` [..., S] at `index` [...]; leading dimensions are broadcast."""
    index = np.asarray(index).astype(np.intp)
    if values.ndim == 1:
        return values[index]
    if values.shape[:-1] != index.shape:
        shape = np.broadcast_shapes(values.shape[:-1], index.shape)
        values, index = np.broadcast_to(values, (*shape, values.shape[-1])), np.broadcast_to(index, shape)
    return values.reshape(-1, values.shape[-1])[np.arange(index.size), index.ravel()].reshape(index.shape)


def _gather(values: Any, order: Any) -> Any:
    """Entries [..., K] of `values` [..., S] at `order` [..., K]; quicker than `take_along_axis` for small arrays."""
    if values.ndim == 1:
        return values[order]
    rows = values.reshape(-1, values.shape[-1])
    return rows[np.arange(len(rows))[:, None], order.reshape(len(rows), -1)].reshape(order.shape)


def _sums_before(values: Any) -> Any:
    """[..., R + 1]: sums of the first 0, 1, ..., R of `values` [..., R]."""
    sums = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
    np.cumsum(values, -1, out=sums[..., 1:])
    return sums


def _largest(cell: Any, values: Any, size: int) -> Any:
    """The largest value [size] of each cell; -inf where a cell has none."""
    largest = np.full(size, -np.inf)
    np.maximum.at(largest, cell, values)
    return largest


def _put(ring: Any, place: Any, values: Any) -> Any:
    """A copy of `ring` [..., R] with `values` [..., T] at the places [..., T]; place R is nowhere."""
    longer = np.concatenate([ring, ring[..., :1]], -1)
    np.put_along_axis(longer, place, values, -1)
    return longer[..., :-1]


NUMPY = SimpleNamespace(
    where=np.where,
    minimum=np.minimum,
    maximum=np.maximum,
    clip=lambda values, low, high: np.minimum(np.maximum(values, low), high),
    floor=np.floor,
    ceil=np.ceil,
    rint=np.rint,
    abs=np.abs,
    exp=np.exp,
    log=np.log,
    sqrt=np.sqrt,
    isnan=np.isnan,
    zeros_like=np.zeros_like,
    ones_like=np.ones_like,
    full_like=np.full_like,
    expand=np.broadcast_to,
    take=_take,
    asarray=lambda values, like: np.asarray(values),
    arange=lambda size, like: np.arange(float(size)),
    zeros=lambda shape, like: np.zeros(shape),
    floats=lambda values, like: np.asarray(values, np.float64),
    ints=lambda values: np.asarray(values).astype(np.int64),
    zero_nan=lambda values: np.where(np.isnan(values), 0.0, values),
    cumsum=lambda values: np.cumsum(values, -1),
    running_min=lambda values: np.minimum.accumulate(values, -1),
    flip=lambda values: values[..., ::-1],
    swap=lambda values: values.swapaxes(-1, -2),
    cat=lambda parts: np.concatenate(parts, -1),
    stack=lambda parts: np.stack(np.broadcast_arrays(*parts), -1).astype(np.float64, copy=False),
    rows=lambda parts: np.stack(parts, 1),
    argmax=lambda values: np.asarray(values).argmax(-1),
    max=lambda values: values.max(-1),
    min=lambda values: values.min(-1),
    any=lambda values: values.any(-1),
    all=lambda values: values.all(-1),
    argsort=lambda keys: keys.argsort(-1, kind="stable"),
    gather=_gather,
    # where `value` [...] would stand in rising `values` [..., R], before its equals
    place=lambda values, value: (values < value[..., None]).sum(-1),
    sums_before=_sums_before,
    gather_rows=lambda values, order: values[np.arange(len(values))[:, None], order],
    add_up=lambda cell, amount, size: np.bincount(cell, amount, size).astype(np.float64),
    largest=_largest,
    put=_put,
    surely=lambda mask: bool(np.all(mask)),
    most=lambda mask: int(mask.sum(-1).max(initial=0)),
    bound=lambda values, largest: int(values.max(initial=0)),
)


_TORCH: list[Any] = []
"""The functions of torch, once they were asked for. A compiler reads this list; it cannot look into a cache."""


def _torch() -> Any:
    if not _TORCH:
        _TORCH.append(_of_torch())
    return _TORCH[0]


def _of_torch() -> Any:
    import torch

    compiling = torch.compiler.is_compiling

    def tensors(*parts: Any) -> list[Any]:
        like = next(part for part in parts if isinstance(part, torch.Tensor))
        return [p if isinstance(p, torch.Tensor) else torch.as_tensor(p, device=like.device) for p in parts]

    def number(value: Any) -> bool:
        return isinstance(value, (int, float))

    def minimum(a: Any, b: Any) -> Any:
        if number(a) or number(b):
            return b.clamp(max=a) if number(a) else a.clamp(max=b)
        return torch.minimum(*_same(*tensors(a, b)))

    def maximum(a: Any, b: Any) -> Any:
        if number(a) or number(b):
            return b.clamp(min=a) if number(a) else a.clamp(min=b)
        return torch.maximum(*_same(*tensors(a, b)))

    def _same(a: Any, b: Any) -> tuple[Any, Any]:
        kind = torch.promote_types(a.dtype, b.dtype)
        return a.to(kind), b.to(kind)

    def take(values: Any, index: Any) -> Any:
        index = index.long()[..., None]
        if values.shape[:-1] != index.shape[:-1]:
            # all of one table: shapes that differ by axes of length 1; `torch.broadcast_shapes` is slow
            shapes = torch.broadcast_shapes if compiling() else np.broadcast_shapes
            shape = shapes(values.shape[:-1], index.shape[:-1])
            index, values = index.expand(*shape, 1), values.expand(*shape, values.shape[-1])
        return values.gather(-1, index)[..., 0]

    def asarray(values: Any, like: Any) -> Any:
        if isinstance(values, torch.Tensor):
            return values
        first = values
        while isinstance(first, (list, tuple)) and first:
            first = first[0]
        floats = isinstance(first, float) or getattr(getattr(values, "dtype", None), "kind", "") == "f"
        return torch.as_tensor(values, device=like.device, dtype=like.dtype if floats else None)

    def sums_before(values: Any) -> Any:
        sums = values.new_zeros((*values.shape[:-1], values.shape[-1] + 1))
        torch.cumsum(values, -1, out=sums[..., 1:])
        return sums

    def stack(parts: Any) -> Any:
        parts = tensors(*parts)
        kind = next(part.dtype for part in parts if part.is_floating_point())
        return torch.stack([part.to(kind) for part in torch.broadcast_tensors(*parts)], -1)

    def gather_rows(values: Any, order: Any) -> Any:
        return values[torch.arange(len(values), device=values.device)[:, None], order]

    def add_up(cell: Any, amount: Any, size: int) -> Any:
        return torch.zeros(size, dtype=amount.dtype, device=amount.device).index_add_(0, cell.long(), amount)

    def largest(cell: Any, values: Any, size: int) -> Any:
        lowest = torch.full((size,), -math.inf, dtype=values.dtype, device=values.device)
        return lowest.scatter_reduce(0, cell.long(), values, "amax")

    def put(ring: Any, place: Any, values: Any) -> Any:
        out, (size, count) = ring.clone(), (ring.shape[-1], place.shape[-1])
        flat = place.reshape(-1)
        at = (flat < size).nonzero()[:, 0]
        row = torch.div(at, count, rounding_mode="floor")
        out.view(-1)[row * size + flat[at]] = values.reshape(-1)[at].to(ring.dtype)
        return out

    return SimpleNamespace(
        where=torch.where,
        minimum=minimum,
        maximum=maximum,
        clip=lambda values, low, high: minimum(maximum(values, low), high),
        floor=torch.floor,
        ceil=torch.ceil,
        rint=torch.round,
        abs=torch.abs,
        exp=torch.exp,
        log=torch.log,
        sqrt=torch.sqrt,
        isnan=torch.isnan,
        zeros_like=torch.zeros_like,
        ones_like=torch.ones_like,
        full_like=torch.full_like,
        expand=lambda values, shape: values.expand(shape),
        take=take,
        asarray=asarray,
        arange=lambda size, like: torch.arange(size, device=like.device, dtype=like.dtype),
        zeros=lambda shape, like: torch.zeros(shape, device=like.device, dtype=like.dtype),
        floats=lambda values, like: values.to(like.dtype),
        ints=lambda values: values.long(),
        zero_nan=lambda values: torch.where(torch.isnan(values), 0.0, values),
        cumsum=lambda values: torch.cumsum(values, -1),
        running_min=lambda values: torch.cummin(values, -1).values,
        flip=lambda values: values.flip(-1),
        swap=lambda values: values.transpose(-1, -2),
        cat=lambda parts: torch.cat(parts, -1),
        stack=stack,
        rows=lambda parts: torch.stack(parts, 1),
        argmax=lambda values: (values.to(torch.uint8) if values.dtype is torch.bool else values).argmax(-1),
        max=lambda values: values.amax(-1),
        min=lambda values: values.amin(-1),
        any=lambda values: values.any(-1),
        all=lambda values: values.all(-1),
        argsort=lambda keys: keys.argsort(dim=-1, stable=True),
        gather=lambda values, order: values.gather(-1, order),
        place=lambda values, value: torch.searchsorted(values, value[..., None])[..., 0],
        sums_before=sums_before,
        gather_rows=gather_rows,
        add_up=add_up,
        largest=largest,
        put=put,
        # asking a device for a number makes it wait, which costs less than what need not be done; a compiled function
        # does it all, because it cannot know
        surely=lambda mask: not compiling() and bool(mask.all()),
        most=lambda mask: mask.shape[-1] if compiling() else int(mask.sum(-1).max()) if mask.numel() else 0,
        bound=lambda values, largest: largest if compiling() else int(values.max()) if values.numel() else 0,
    )
