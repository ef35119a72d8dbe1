"""Switches: rules that the original got wrong, each with two readings and declared once, as a field.

    vision_reward: Literal["continuous", "cliff"] | None = None

The first choice is ours, the last the original's. None leaves the switch open: it is ours, unless a training with
`compat` decides it.
"""

from __future__ import annotations

import typing
from dataclasses import replace
from typing import Any, Literal, TypeVar

from marlab.lab.errors import UserError

C = TypeVar("C")


def switches(cls: type[Any]) -> dict[str, tuple[str, ...]]:
    """The switches of a config class and their choices."""
    options = {name: typing.get_args(hint) for name, hint in typing.get_type_hints(cls).items()}
    return {
        name: typing.get_args(args[0])
        for name, args in options.items()
        if len(args) == 2 and args[1] is type(None) and typing.get_origin(args[0]) is Literal
    }


def originals(cls: type[Any]) -> dict[str, Any]:
    """The original's side of every switch of a config class."""
    return {name: choices[-1] for name, choices in switches(cls).items()}


def decided(config: C, compat: bool) -> C:
    """The config with every open switch set: as the original read it with `compat`, else as we do."""
    values = {name: choices[-1 if compat else 0] for name, choices in switches(type(config)).items()}
    chosen = {name: value for name, value in values.items() if getattr(config, name) is None}
    return replace(config, **chosen)  # type: ignore[type-var]


def check_switches(config: Any) -> None:
    """Refuse a switch that is set to neither of its choices."""
    for name, choices in switches(type(config)).items():
        if getattr(config, name) not in (None, *choices):
            raise UserError(f"{name} is {getattr(config, name)!r}; it must be {' or '.join(choices)}.")
