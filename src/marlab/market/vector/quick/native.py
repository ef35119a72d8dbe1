"""Rule W's answers by C code (`rule_w.c`): built by the system's compiler for a processor, by NVRTC for a GPU.

The arrays of `marlab.market.rules` are the reference: they play anywhere, and the C code is tested against them,
decision for decision. It reads the same tables, one factory at a time, so that nothing between them and the answer
goes through memory.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from marlab.lab.native import library_of
from marlab.market.logs.daystate import LINES, SCALARS
from marlab.market.logs.worldlog import ACCEPT, END, REJECT
from marlab.market.rules import bargain, economic, executor, features, offers, records, rule_w
from marlab.market.rules.bargain import RuleOptions
from marlab.market.rules.habits import OWN, PLACE, SIGHTS, USUAL
from marlab.market.rules.l1 import L1Options
from marlab.market.rules.plan import Wishes
from marlab.market.rules.prospects import Fitting
from marlab.market.rules.records import Records
from marlab.market.vector.books import SLOTS
from marlab.market.vector.market import Market
from marlab.market.vector.seats import CONSUMERS, Rows

if TYPE_CHECKING:
    from marlab.market.vector.rule_w import RuleW

Tensor = Any
"""A torch.Tensor."""
SOURCE = Path(__file__).with_name("rule_w.c")
BLOCK = 64
"""Factories of a block of a GPU."""
MOST_LOTS = 10
"""Opening lots and prices by round, in C."""
_ADDRESSES = (
    "seat", "place", "sides", "running", "units", "price", "ahead", "fields", "reach", "signed", "sums", "latest",
    "goal", "known", "number", "options", "option", "alpha", "moves", "room", "chances", "who", "all_units",
    "all_price",
    "all_ahead", "least", "money", "fits", "all", "order", "op", "choice", "quantity", "wished_price", "worth",
    "at",
)  # fmt: skip
_WHOLE, _REAL = ("order", "op", "choice"), ("quantity", "wished_price", "worth")
_NUMBERS = ("rows", "seats", "half", "partners", "first", "heard", "cells", "remembered", "some")


def _defines(dtype: torch.dtype, wide: int) -> dict[str, Any]:
    """What the C code is told: places of fields, constants of the rules."""
    prior = ", ".join(str(value) for value in economic._PRIOR)
    return {
        **{f"F_{name}": place for place, name in enumerate(SCALARS)},
        **{f"R_{name}": place for place, name in enumerate(Records._fields)},
        "REAL": "float" if dtype is torch.float32 else "double", "WIDE": wide, "LINES": LINES, "PRIOR": f"{{{prior}}}",
        "PRIOR_SALES": len(economic.PRIOR_SALES), "ACCEPT": ACCEPT, "REJECT": REJECT, "END": END, "FADES": offers.FADES,
        "SURE_SHARE": economic.SURE_SHARE, "REFILL_DAYS": economic.REFILL_DAYS, "RAISE_ROUND": economic.RAISE_ROUND,
        "LAST_BUYING_DAYS": economic.LAST_BUYING_DAYS, "RESERVE": L1Options().reserve, "PRICE_NORM": features.PRICE,
        "REACH": executor.REACH, "TINY": executor.TINY, "SPARE_NEED": rule_w.SPARE_NEED,
        "FILLING_DAYS": rule_w.FILLING_DAYS, "LATEST": records.LATEST, "PATIENT_MEAN": records.PATIENT_MEAN,
        "RARELY": records.RARELY, "LARGE_LOT": bargain.LARGE_LOT,
        "SEEN": len(SIGHTS),
    }  # fmt: skip


class Native(NamedTuple):
    """The functions for one number type and one number of partners: addresses and numbers, and how many there are."""

    suppliers: Callable[[Tensor, int], None]
    consumers: Callable[[Tensor, int], None]
    wishes: Callable[[Tensor, int], None]
    note: Callable[[Tensor, int], None]

    def begin(self, market: Market, rule: RuleW, rows: Rows) -> Call:
        """Answers to suppliers, and what answers to consumers need."""
        return Call(self, market, rule, rows)


def native(market: Market, dtype: torch.dtype) -> Native | None:
    """The C code for a market; None where it cannot be built."""
    return _built(market.device.type, dtype, market.wide)


@cache
def _built(device: str, dtype: torch.dtype, wide: int) -> Native | None:
    defines = _defines(dtype, wide)
    if device == "cuda":
        return _for_gpu(defines)
    library = library_of(SOURCE, *(f"{name}={value}" for name, value in defines.items()))
    if not isinstance(library, ctypes.CDLL):
        return None

    def caller(function: Any) -> Callable[[Tensor, int], None]:
        function.argtypes, function.restype = (ctypes.c_void_p,), None

        def call(values: Tensor, count: int) -> None:
            function(values.data_ptr())

        return call

    return Native(*(caller(getattr(library, name)) for name in Native._fields))


def _for_gpu(defines: dict[str, Any]) -> Native | None:
    """Compiled by NVRTC, which comes with torch; rounding as written, without fused sums."""
    lines = "\n".join(f"#define {name} {value}" for name, value in defines.items())
    source = f"{lines}\n{SOURCE.read_text()}"

    def caller(kernel: Any) -> Callable[[Tensor, int], None]:
        def call(values: Tensor, count: int) -> None:
            blocks = (count + BLOCK - 1) // BLOCK
            if blocks:
                kernel(grid=(blocks, 1, 1), block=(BLOCK, 1, 1), args=[values])

        return call

    try:
        from torch.cuda._utils import _cuda_load_module, _nvrtc_compile

        binary, _ = _nvrtc_compile(source, Native._fields[0], nvcc_options=["--fmad=false"])
        kernels: Any = _cuda_load_module(binary, list(Native._fields))
        return Native(*(caller(kernels[name]) for name in Native._fields))
    except (AttributeError, ImportError, KeyError, OSError, RuntimeError, TypeError):
        return None


def option_values(options: RuleOptions) -> list[float]:
    """What the C code reads of options: 30 numbers, and the usual habits."""
    lots, prices = options.opening_lots, options.opening_prices
    count = min(MOST_LOTS, max(len(lots), len(prices)))

    def padded(values: tuple[float, ...]) -> list[float]:
        longer = [*map(float, values), *[float(values[-1])] * MOST_LOTS]
        return longer[:MOST_LOTS]

    price = {"free": float("nan"), "lowest": 0.0, "highest": 1.0}[options.price]
    first = [
        options.opening_days, options.small_lot, options.small_price, options.hold * options.wait, options.loss,
        options.fill_first, options.wait, price, options.lot, count,
    ]  # fmt: skip
    return [*map(float, first), *padded(lots), *padded(prices), *USUAL[: len(OWN)]]


def learnt_table(habits: Tensor) -> Tensor:
    """[N, O]: the same of learnt habits [N, H], rows as `habits.ALL` orders them."""
    names = ["opening_days", "small_lot", "small_price", "hold", "loss"]
    turns = [1, 2, *[3] * (MOST_LOTS - 2)]
    opening = [f"opening_{part}_{turn}" for part in ("lot", "price") for turn in turns]
    # stock is filled first, waiting is weighed, price and lot are free, and there are three opening lots
    fixed = habits.new_tensor([1.0, 1.0, float("nan"), 0.0, 3.0]).expand(len(habits), 5)
    columns = [habits[:, [PLACE[name] for name in part]] for part in (names, opening, list(OWN))]
    return torch.cat([columns[0], fixed, *columns[1:]], 1)


class Call:
    """One half-round: tables for the C code, and its answers."""

    def __init__(self, code: Native, market: Market, rule: RuleW, rows: Rows) -> None:
        mornings, memory, threads, half = rule.mornings, rule.memory, market.threads, market.half
        table, partners = mornings.table(market, rows, alive=True), memory.partners[CONSUMERS]
        n, wide, like = len(rows), market.wide, table.fields
        self.running = rows.gather(threads.running) & rows.sides[:, :, None]  # [N, 2, A]
        self.alpha = like.new_empty((n, 2, wide))
        self.moves = torch.empty((4, n, 2, wide), dtype=torch.int32, device=like.device)
        self.room, chances = like.new_empty((n, SLOTS)), like.new_empty((3, n, wide))
        first = (half + 1) % 2
        known, goal = partners.table(), rule.goal
        self._tensors: dict[str, Tensor] = {
            "seat": table.seat, "place": rows.threads, "sides": rows.sides, "running": threads.running,
            "units": threads.units, "price": threads.price, "ahead": threads.ahead, "fields": table.fields,
            "reach": table.reach, "signed": table.signed, "sums": memory.sums, "latest": memory.latest, "goal": goal,
            "known": known, "number": partners.number, "options": rule.option_table, "option": rule.option_number,
            "alpha": self.alpha, "moves": self.moves, "room": self.room, "chances": chances, "all_units": memory.units,
            "all_price": memory.price, "all_ahead": memory.ahead,
        }  # fmt: skip
        self._numbers = {
            "rows": n, "seats": table.fields.shape[1], "half": half, "partners": known.shape[1], "first": first,
            "heard": len(range(first, half, 2)), "cells": threads.units.numel(),
        }  # fmt: skip
        self._code, self._device = code, like.device
        code.suppliers(self._packed(), n)

    def sell(self, some: Tensor, before: Fitting, at: Tensor) -> None:
        """Answers to the consumers of some rows [M], whose earlier offers that fit are `before` at places [M]."""
        self._add(some, before)
        self._tensors["at"] = at
        self._code.consumers(self._packed(), len(some))

    def wishes(self, some: Tensor, before: Fitting, held: Tensor, there: Tensor) -> tuple[Wishes, Tensor]:
        """As `rule_w.sell`, without reasons, for some rows [M]; `held` [M, S] as `rule_w.held_back`."""
        self._add(some, before)
        whole = {name: torch.empty(there.shape, dtype=torch.int64, device=there.device) for name in _WHOLE}
        real = {name: self.room.new_empty(there.shape) for name in _REAL}
        self._tensors |= whole | real
        self._code.wishes(self._packed(), len(some))
        order, op, choice = whole.values()
        quantity, price, worth = real.values()
        none = torch.zeros_like(order)
        return Wishes(order, op, quantity, price, torch.zeros_like(price), choice, there, none, held), worth

    def _add(self, some: Tensor, before: Fitting) -> None:
        least, money, fits, known = before
        self._tensors |= {"who": some, "least": least, "money": money, "fits": fits, "all": known}
        self._numbers |= {"remembered": least.shape[-1], "some": len(some)}

    def _packed(self) -> Tensor:
        """All numbers and addresses, as the C code reads them."""
        kept = {name: values if values is None else values.contiguous() for name, values in self._tensors.items()}
        self._tensors = kept  # what is read must live until it was read
        numbers = [self._numbers.get(name, 0) for name in _NUMBERS]
        return packed(numbers, (kept.get(name) for name in _ADDRESSES), self._device)


def packed(numbers: Iterable[int], tensors: Iterable[Tensor | None], device: torch.device) -> Tensor:
    """Numbers and addresses of contiguous tensors, as the C code reads them."""
    addresses = (0 if values is None else values.data_ptr() for values in tensors)
    return torch.tensor([*numbers, *addresses]).to(device)
