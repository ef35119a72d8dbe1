"""The flags of a command that hands its work to the engine: where it is done, which changes no result."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self, TypeVar

from marlab.lab.engine.tasks import EngineConfig, EngineName, parse_parallelism

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

    @classmethod
    def of(cls, config: Any) -> Self:
        """A command itself, or one with a config's settings and usual flags: functions take either."""
        return config if isinstance(config, cls) else cls(**{f.name: getattr(config, f.name) for f in fields(config)})

    def engine_config(self, instead: EngineConfig | str | None = None) -> EngineConfig:
        """Where the tasks run: as the flags say, or as a caller says instead."""
        if instead is None:
            return EngineConfig(self.engine, self.workers, self.address)
        return instead if isinstance(instead, EngineConfig) else parse_parallelism(instead)


def config_of(command: Any, kind: type[C]) -> C:
    """The part of a command that decides its results, as the dataclass `kind` that it extends: what a resumed run
    must repeat."""
    return kind(**{f.name: getattr(command, f.name) for f in fields(kind)})  # type: ignore[arg-type]
