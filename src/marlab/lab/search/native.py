"""The trees of a search in C, for a CPU: built with the system's compiler when first used.

`search_native.c` follows the same rules as `search_trees`, one root after the other, which spares a CPU the many
passes over small tensors. Without a compiler everything works with tensors, only slower. A built library is kept in
the user's cache directory under a name that holds its source, its flags and the processor.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from marlab.lab.errors import UserError
from marlab.lab.runs.files import write_text
from marlab.lab.search.config import SearchConfig
from marlab.lab.search.rules import Rows, prior_weights
from marlab.lab.search.trees import Evaluation, Grown, RootNoise, Transition, slot_table

SOURCE = Path(__file__).with_suffix(".c")
FLAGS = ("-O3", "-march=native", "-ffp-contract=off", "-fno-strict-aliasing", "-fPIC", "-shared")
BUILD_LIMIT_S = 60
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
        found = _build(*REALS[dtype][:2], actions)
    if isinstance(found, ctypes.CDLL):
        return found
    if required:
        raise UserError(f"search engine native cannot be built ({found}); use engine auto or tensors.")
    return None


@lru_cache(maxsize=32)
def _build(real: str, integer: str, actions: int) -> ctypes.CDLL | str:
    """The library, or why there is none. Built to a temporary name and moved, so that two processes may do it."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return "no C compiler was found"
    options = (*FLAGS, f"-DREAL={real}", f"-DINTEGER={integer}", f"-DACTIONS={actions}")
    key = hashlib.sha256(repr((SOURCE.read_text(), options, _processor())).encode()).hexdigest()[:16]
    library = _cache() / f"search_{real}_{actions}_{key}.so"
    try:
        library.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _private(library.parent):
            return f"others may write to {library.parent}"
        if not _intact(library):
            with tempfile.TemporaryDirectory(dir=library.parent) as folder:
                built = Path(folder) / library.name
                command = [compiler, *options, str(SOURCE), "-o", str(built), "-lm"]
                subprocess.run(command, check=True, capture_output=True, timeout=BUILD_LIMIT_S)
                digest = hashlib.sha256(built.read_bytes()).hexdigest()
                write_text(library.with_suffix(".sha256"), digest)
                with built.open("rb") as file:
                    os.fsync(file.fileno())
                built.replace(library)
        return _declared(ctypes.CDLL(str(library)))
    except subprocess.CalledProcessError as error:
        return f"the compiler said: {error.stderr.decode(errors='replace').strip()[:300]}"
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)


def _intact(library: Path) -> bool:
    """Whether the cached library is what was built: loading one that was cut short kills the process."""
    try:
        return hashlib.sha256(library.read_bytes()).hexdigest() == library.with_suffix(".sha256").read_text()
    except OSError:
        return False


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "marlab"


def _private(folder: Path) -> bool:
    """Whether nobody else can have put a library there."""
    status = folder.stat()
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _processor() -> str:
    """What -march=native depends on: a home directory may be shared by different machines."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text().splitlines()
        return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}))
    return f"{platform.machine()} {platform.processor()} {platform.node()}"


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
