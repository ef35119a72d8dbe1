"""What every table of drawers must keep: names that exist, and one for each config that a run is opened with."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import is_dataclass

from marlab.lab.door import resolve
from tests.fuzz.configs import run_commands


def check(package: str, table: Mapping[str, str]) -> None:
    assert table
    for words, command in run_commands().items():
        kinds = {f"{kind.__module__}:{kind.__qualname__}" for kind in command.config.__mro__}
        if command.config.__module__.startswith(f"marlab.{package}."):
            assert kinds & set(table), f"`marlab draw` cannot draw a run of `marlab {words}`"
    for kind, target in table.items():
        config, function = resolve(kind), resolve(target)
        assert kind.startswith(f"marlab.{package}.") and target.startswith(f"marlab.{package}.")
        assert is_dataclass(config) and f"{config.__module__}:{config.__qualname__}" == kind
        assert list(inspect.signature(function).parameters) == ["run", "config", "quiet"], target
