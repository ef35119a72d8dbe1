"""A world's front door: public names that are imported when they are used, and weights that come with the package.

    __getattr__, __dir__ = lazy_names(__name__, {"load": "marlab.fish.api:load"})

So `import marlab.fish` costs nothing, and neither torch nor scml is needed before something that uses them is called.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

from marlab.lab.errors import UserError


def resolve(target: str) -> Any:
    """What `module:name` names; the name may have dots, as in `module:command.call`. A module alone names itself."""
    module, _, name = target.partition(":")
    found = importlib.import_module(module)
    return attrgetter(name)(found) if name else found


def lazy_names(package: str, targets: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package whose public names live where `targets` says."""

    def get(name: str) -> Any:
        if name not in targets:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return resolve(targets[name])

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *targets})

    return get, names


class _CallableRoom(ModuleType):
    """A package that can be called like the function it is named after."""

    target: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return resolve(self.target)(*args, **kwargs)


def make_callable(package: str, target: str) -> None:
    """Let `world.room(...)` do what `target` does. A room and a public function of a world may have the same name, and
    whichever was imported first, both must work."""
    module = sys.modules[package]
    module.__class__ = _CallableRoom
    module.__dict__["target"] = target


# --- weights that come with the package -----------------------------------------------------------------------------


def shipped_names(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.pt"))


def shipped_file(name: str, folder: Path) -> Path | None:
    """The file of weights that come with the package under this name, if there are such."""
    return folder / f"{name}.pt" if name in shipped_names(folder) else None


def nothing_called(text: str, folder: Path, expected: str) -> UserError:
    """The sentence for a name that is neither a file, nor a run, nor shipped."""
    return UserError(f"There is no '{text}': expected {expected}, or one of the shipped {_list(folder)}.")


def _list(folder: Path) -> str:
    return ", ".join(shipped_names(folder)) or "ones (there are none)"
