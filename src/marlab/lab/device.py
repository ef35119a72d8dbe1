"""Choosing where to compute, with one clear sentence when that is not possible."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from marlab.lab.errors import UserError


def choose_device(text: str) -> torch.device:
    """`auto` takes a GPU where there is one; otherwise `cpu`, `cuda` or `cuda:N`."""
    if text == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(text)
    except RuntimeError:
        raise UserError(f"device is '{text}', expected auto, cpu, cuda or cuda:N.") from None
    if device.type not in ("cpu", "cuda"):
        raise UserError(f"device is '{text}', expected auto, cpu, cuda or cuda:N.")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UserError(f"device is '{text}', but this machine has no usable GPU.")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UserError(f"device is '{text}', but this machine has {torch.cuda.device_count()} GPU(s).")
    return device


@contextmanager
def threads(number: int = 1) -> Iterator[None]:
    """Compute on so many threads: several round sums in an order of their own, in some gradients another one each
    time."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
