"""Who played a world, and by which code: a tournament that goes on does not mix the scores of two agents of one name.

An agent is its class's source file, its parameters, and the weights that they name or that come with the package;
around it are the simulator and the rooms that play and measure a world. A helper module of somebody's own agent is not
looked into.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from marlab.lab.errors import UserError
from marlab.lab.runs.identity import HOUSE, code_identity
from marlab.market.agent.layers import find_learned
from marlab.market.simulator.experts import find_player

CODE = (
    "market/logs", "market/rules", "market/simulator", "market/networks", "market/agent", "market/arena/world.py",
    *(file.relative_to(HOUSE).as_posix() for file in sorted((HOUSE / "market" / "shipped").glob("*.pt"))),
)  # fmt: skip
"""Where a world is played and measured, and the weights that come with the package."""
OURS = "LitaAgentHRL"
LIBRARIES = ("scml", "negmas")
"""The simulator. A tournament goes on on a machine with another NumPy or torch, where worlds are the same."""


@cache
def world_identity(agents: Sequence[str]) -> str:
    """Of a world in which these agents have seats."""
    parts = [code_identity(CODE, LIBRARIES), *(agent_identity(name) for name in sorted(set(agents)))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def agent_identity(text: str) -> str:
    """A name for `Name(key=value, ...)` that changes with its code and its weights."""
    cls, values = find_player(text)
    digest = hashlib.sha256(text.encode())
    for file in [*_source(cls), *_weights(values.values()), *_learnt(cls, values)]:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _source(cls: type) -> list[Path]:
    try:
        file = inspect.getsourcefile(cls)
    except TypeError:  # a class without a file
        return []
    return [Path(file)] if file is not None and Path(file).is_file() else []


def _weights(values: Iterable[object]) -> list[Path]:
    """The files that parameters name: weights, or those in a folder of weights."""
    found: list[Path] = []
    for value in values:
        path = Path(value) if isinstance(value, str) and value else None
        if path is not None and path.is_file():
            found.append(path)
        elif path is not None and path.is_dir():
            found += sorted(path.glob("*.pt"))
    return found


def _learnt(cls: type, values: Mapping[str, object]) -> list[Path]:
    """What one of our agents has learnt: a file of the package, or of the run that its parameters name."""
    place = values.get("weights")
    if cls.__name__ != OURS or values.get("mode") in ("heuristic", "neural") or not isinstance(place, str | None):
        return []
    try:
        return [find_learned(place)]
    except UserError:  # it has learnt nothing, or is refused when it is made
        return []
