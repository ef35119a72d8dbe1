"""What every table of drawers must keep: names that exist, and one for each config that a run is opened with."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import is_dataclass

from marlab.lab.door import resolve


def check(package: str, table: Mapping[str, str]) -> None:
    assert table
    for kind, target in table.items():
        config, function = resolve(kind), resolve(target)
        assert kind.startswith(f"marlab.{package}.") and target.startswith(f"marlab.{package}.")
        assert is_dataclass(config) and f"{config.__module__}:{config.__qualname__}" == kind
        assert list(inspect.signature(function).parameters) == ["run", "config", "quiet"], target
