"""The flags of a command that hands its work to the engine: where it is done, which changes no result."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

from marlab.lab.engine.tasks import EngineConfig, EngineName

C = TypeVar("C")


@dataclass(frozen=True)
class EngineFlags:
    """Base of a command's dataclass, before that of its config: `class PlayCommand(EngineFlags, PlayConfig)`."""

    engine: EngineName = "local"
    """serial, local (the cores of this machine), dask or ray (a cluster)."""
    workers: int | None = None
    """Tasks at once; default: all cores of this machine, or the whole cluster when an address is given."""
    address: str | None = None
    """Address of a running Dask scheduler or Ray cluster (HOST:PORT)."""
    quiet: bool = False
    """Print nothing but errors."""

    def engine_config(self) -> EngineConfig:
        """Where the tasks run."""
        return EngineConfig(self.engine, self.workers, self.address)


def config_of(command: Any, kind: type[C]) -> C:
    """The part of a command that decides its results, as the dataclass `kind` that it extends: what a resumed run
    must repeat."""
    return kind(**{f.name: getattr(command, f.name) for f in fields(kind)})  # type: ignore[arg-type]
