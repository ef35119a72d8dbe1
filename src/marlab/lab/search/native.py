"""The trees of a search in C, for a CPU: built with the system's compiler when first used.

`search_native.c` follows the same rules as `search_trees`, one root after the other, which spares a CPU the many
passes over small tensors. Without a compiler everything works with tensors, only slower.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import torch
from torch import Tensor

from marlab.lab.errors import UserError
from marlab.lab.native import library_of
from marlab.lab.search.config import SearchConfig
from marlab.lab.search.rules import Rows, prior_weights
from marlab.lab.search.trees import Evaluation, Grown, RootNoise, Transition, slot_table

SOURCE = Path(__file__).with_suffix(".c")
REALS = {torch.float32: ("float", "int32_t", torch.int32), torch.float64: ("double", "int64_t", torch.int64)}
MOST_ACTIONS = 32
SCALES = ("siblings", "tree", "range", "none")
"""The order of the C enumeration."""


class _Struct(ctypes.Structure):
    """The C struct `Trees`: sizes, switches, numbers, then addresses."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("batch", "nodes", "width", "outcomes", "depth_limit")),
        *((name, ctypes.c_int64) for name in ("gumbel", "normalise", "lowest", "legacy_q", "legacy_terminal_reward")),
        *((name, ctypes.c_double) for name in ("range_low", "range_high", "visit_offset", "value_scale", "tiny")),
        *((name, ctypes.c_void_p) for name in ("table", "low", "high", "weights", "noise", "considered", "slots")),
        *((name, ctypes.c_void_p) for name in ("path", "length", "parent", "action", "ends")),
    )


# --- the library --------------------------------------------------------------------------------------------------


def native_library(dtype: torch.dtype, actions: int, required: bool = False) -> ctypes.CDLL | None:
    """The library for a number type and a number of actions; none where it cannot be built, unless `required`."""
    if dtype not in REALS or actions > MOST_ACTIONS:
        found: ctypes.CDLL | str = f"it has numbers of type float32 or float64 and up to {MOST_ACTIONS} actions"
    else:
        real, integer, _ = REALS[dtype]
        found = library_of(SOURCE, f"REAL={real}", f"INTEGER={integer}", f"ACTIONS={actions}")
    if isinstance(found, ctypes.CDLL):
        return _declared(found)
    if required:
        raise UserError(f"search engine native cannot be built ({found}); use engine auto or tensors.")
    return None


def _declared(library: ctypes.CDLL) -> ctypes.CDLL:
    pointer = ctypes.c_void_p
    library.start.argtypes = (pointer, pointer, pointer, pointer)
    library.choose_first.argtypes = library.walk.argtypes = (pointer,)
    library.grow.argtypes = (pointer, ctypes.c_int64, *(pointer,) * 6)
    library.extremes.argtypes = (pointer, pointer, pointer)
    for function in (library.start, library.choose_first, library.walk, library.grow, library.extremes):
        function.restype = None
    return library


# --- the trees ----------------------------------------------------------------------------------------------------


class NativeTrees:
    """The same as TensorTrees; a root's nodes lie together in memory."""

    def __init__(self, library: ctypes.CDLL, root: Evaluation, config: SearchConfig, noise: RootNoise) -> None:
        batch, actions = root.logits.shape
        nodes, like = config.simulations + 1, root.value
        self.library, self.config, self.dtype, self.actions = library, config, like.dtype, actions
        integer = REALS[like.dtype][2]
        self.lanes = 8 if actions <= 8 else 16 if actions <= 16 else 32
        width = 3 * self.lanes + 9 + config.outcomes * actions
        self.table = like.new_zeros(batch, nodes, width)
        self.integers = self.table.view(integer)
        """The same memory: choice, next, depth, outcome and children from column `first` on."""
        self.first = 3 * self.lanes + 5
        self.table[..., self.first - 1] = 1.0  # the discount of roots
        self.integers[..., self.first + 4 :] = -1
        self.many, nothing = config.outcomes > 1, torch.empty(0)
        self.parent, self.action = torch.zeros(batch, dtype=torch.int64), torch.zeros(batch, dtype=torch.int64)
        self.memory: dict[str, Tensor] = {
            "table": self.table, "low": like.clone(), "high": like.clone(),
            "weights": prior_weights(config.c1, config.c2, config.simulations, like.dtype, like.device),
            "noise": nothing if noise.gumbel is None else noise.gumbel.t().contiguous(),
            "considered": nothing if noise.considered is None else noise.considered.contiguous(),
            "slots": slot_table(config.outcomes, config.simulations, like.device) if self.many else nothing,
            "path": torch.zeros(batch, config.depth_limit + 1, dtype=integer),
            "length": torch.zeros(batch, dtype=integer), "parent": self.parent, "action": self.action,
            "ends": torch.zeros(config.simulations, batch, dtype=torch.int64),
        }  # fmt: skip
        self.struct = _Struct(
            batch=batch, nodes=nodes, width=width, outcomes=config.outcomes, depth_limit=config.depth_limit,
            gumbel=config.root == "gumbel", normalise=SCALES.index(config.normalise),
            lowest=config.unvisited == "lowest", legacy_q=config.legacy_q,
            legacy_terminal_reward=config.legacy_terminal_reward, range_low=config.value_range[0],
            range_high=config.value_range[1], visit_offset=config.visit_offset, value_scale=config.value_scale,
            tiny=torch.finfo(like.dtype).tiny, **{name: tensor.data_ptr() for name, tensor in self.memory.items()},
        )  # fmt: skip
        self.address = ctypes.byref(self.struct)
        given = self._given((root.logits, root.value), root.legal)
        library.start(self.address, *[x.data_ptr() for x in given])
        if noise.prior is not None:
            self.table[:, 0, :actions] = noise.prior.t()
        library.choose_first(self.address)

    def _given(self, numbers: tuple[Tensor, ...], legal: Tensor) -> tuple[Tensor, ...]:
        """Tensors as the library reads them; usually they are already. Keep them until it has."""
        dtype = self.dtype
        return (
            *(x if x.dtype is dtype and x.is_contiguous() else x.to(dtype).contiguous() for x in numbers),
            legal if legal.dtype is torch.bool and legal.is_contiguous() else legal.to(torch.bool).contiguous(),
        )

    def walk(self, simulation: int) -> tuple[Tensor, Tensor]:
        self.library.walk(self.address)
        return self.parent, self.action.clone()

    def grow(self, node: int, new: Transition) -> None:
        state = new.evaluation
        given = self._given((state.logits, state.value, new.reward, new.discount), state.legal)
        outcome = new.outcome.to(torch.int64).contiguous() if self.many and new.outcome is not None else None
        named = None if outcome is None else outcome.data_ptr()
        self.library.grow(self.address, node, *[x.data_ptr() for x in given], named)

    def extremes(self) -> tuple[Tensor, Tensor]:
        low, high = torch.empty_like(self.memory["low"]), torch.empty_like(self.memory["high"])
        self.library.extremes(self.address, low.data_ptr(), high.data_ptr())
        return low, high

    def grown(self) -> Grown:
        table, integers, first = self.table.permute(2, 1, 0), self.integers.permute(2, 1, 0), self.first
        actions, lanes = self.actions, self.lanes
        rows = Rows(table[:actions], table[lanes : lanes + actions], table[2 * lanes : 2 * lanes + actions + 1])
        children = integers[first + 4 :].unflatten(0, (self.config.outcomes, actions))
        return Grown(rows, table[first - 2 : first], integers[first + 2], children, self.memory["ends"])
