"""A submission as a package of its own: the agent's files, the parts of marlab that it needs, and weights as arrays.

The packed files refer to each other by relative imports, so the folder works wherever it is put, whatever its name.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import marlab
from marlab.lab.errors import UserError
from marlab.market.agent.layers import UNTRAINED, find_learned, find_weights
from marlab.market.agent.settings import LAYERS, AgentSettings
from marlab.market.networks import forward
from marlab.market.networks.forward import L2_KIND, L3_KIND, L4_KIND
from marlab.market.networks.play import load_for_play
from marlab.market.simulator.experts import find_player

PARTS = "parts"
"""The subpackage that holds what comes from marlab."""
WEIGHTS = "weights"
KINDS = dict(zip(LAYERS, (L2_KIND, L3_KIND, L4_KIND)))
_MARLAB = Path(marlab.__file__).parent


@dataclass(frozen=True)
class Packed:
    """What was packed."""

    folder: Path  # the package
    name: str  # of the package
    class_name: str
    modules: tuple[str, ...]  # of marlab
    files: tuple[Path, ...]  # of the user
    networks: tuple[str, ...]  # layers


def package_name(cls: type) -> str:
    """my_agent for MyAgent, lita_agent_hrl for LitaAgentHRL."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", cls.__name__)
    return "_".join(word.lower() for word in words) or cls.__name__.lower()


def pack(player: str, folder: Path) -> Packed:
    """Write the package of an agent into a folder that exists; its name is made from the class."""
    cls, parameters = find_player(player)
    source = inspect.getsourcefile(cls)
    if source is None or cls.__module__ == "__main__":
        raise UserError(f"The agent {player} has no file; put its class into a module.")
    target = folder / package_name(cls)
    target.mkdir()
    ours = cls.__module__.partition(".")[0] == "marlab"
    own = [] if ours else list(_own_files(Path(source)))
    needed = _closure([cls.__module__] if ours else [name for file in own for name in _imports(file, everywhere=True)])
    for module in needed:
        _copy_module(module, target / PARTS)
    for file in own:
        (target / file.name).write_text(_relative(file.read_text(encoding="utf-8"), 0, own), encoding="utf-8")
    networks = _write_weights(parameters, target) if ours else {}
    home = f".{PARTS}.{cls.__module__.removeprefix('marlab.')}" if ours else f".{Path(source).stem}"
    module = "agent" if ours or Path(source).stem != "agent" else "entry"
    (target / f"{module}.py").write_text(_entry(cls, home, parameters | networks), encoding="utf-8")
    (target / "__init__.py").write_text(
        f'"""{cls.__name__}, an agent of the SCML Standard league."""\n\nfrom .{module} import {cls.__name__}\n\n'
        f'__all__ = ["{cls.__name__}"]\n',
        encoding="utf-8",
    )
    layers = tuple(layer for layer in LAYERS if f"{layer}_model_path" in networks)
    return Packed(target, target.name, cls.__name__, tuple(needed), tuple(own), layers)


def _entry(cls: type, home: str, parameters: dict[str, Any]) -> str:
    """The module that the league imports: the class with its parameters."""
    texts = {name: _literal(name, value) for name, value in parameters.items()}
    lines = "".join(f"    {name!r}: {text},\n" for name, text in texts.items())
    return (
        f'"""The agent as it was submitted."""\n\nfrom pathlib import Path\n\n'
        f"from {home} import {cls.__qualname__} as _Agent\n\n"
        f"HERE = Path(__file__).parent\nPARAMETERS = {{\n{lines}}}\n\n\n"
        f'class {cls.__name__}(_Agent):\n    """The agent with its parameters."""\n\n'
        "    def __init__(self, *args, **kwargs):\n        super().__init__(*args, **{**PARAMETERS, **kwargs})\n"
    )


def _literal(name: str, value: Any) -> str:
    if isinstance(value, _Packed):
        return f'HERE / "{WEIGHTS}" / "{value.file}"'
    try:
        if ast.literal_eval(repr(value)) == value:
            return repr(value)
    except (ValueError, SyntaxError):
        pass
    raise UserError(f"The parameter {name} = {value!r} cannot be written into a file; use plain values.")


@dataclass(frozen=True)
class _Packed:
    """A file of weights inside the package."""

    file: str


def _write_weights(parameters: dict[str, Any], target: Path) -> dict[str, Any]:
    """What was learnt: habits, or weights of the layers as arrays; the parameters that name them there."""
    settings = AgentSettings(**parameters)
    if settings.plays == "learned" and settings.weights != UNTRAINED:
        learnt = find_learned(settings.weights)
        (target / WEIGHTS).mkdir()
        shutil.copy(learnt, target / WEIGHTS / learnt.name)
        return {"mode": "learned", "weights": _Packed(learnt.name)}
    if not settings.is_neural:
        return {}
    told: dict[str, Any] = {"mode": "neural", "weights": None}
    (target / WEIGHTS).mkdir()
    for layer, kind in KINDS.items():
        place = settings.place_of(layer)
        if place == UNTRAINED:
            raise UserError(f"{layer.upper()} is untrained; a submission needs weights, or mode=heuristic.")
        network = load_for_play(find_weights(layer, place), kind)
        forward.save(target / WEIGHTS / f"{layer}.npz", network)
        told[f"{layer}_model_path"] = _Packed(f"{layer}.npz")
    return told


# --- files and imports --------------------------------------------------------------------------------------------


def _own_files(source: Path) -> Iterator[Path]:
    """The agent's file and those beside it that it imports, each once."""
    waiting, seen = [source], set[Path]()
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        yield file
        for name in _imports(file, everywhere=True):
            beside = source.parent / f"{name.partition('.')[0]}.py"
            if beside.is_file():
                waiting.append(beside)


def _closure(modules: list[str]) -> list[str]:
    """The modules of marlab that some modules need when they are imported, themselves included; no packages."""
    waiting, found = list(modules), set[str]()
    while waiting:
        name = waiting.pop()
        file = _file_of(name)
        if name in found or file is None or file.name == "__init__.py":
            continue
        found.add(name)
        waiting += _imports(file, everywhere=False)
    return sorted(found)


def _file_of(module: str) -> Path | None:
    """The file of a module of marlab; None for what is none."""
    if module.partition(".")[0] != "marlab":
        return None
    path = _MARLAB.joinpath(*module.split(".")[1:])
    return next((f for f in (path.with_suffix(".py"), path / "__init__.py") if f.is_file()), None)


def _imports(file: Path, everywhere: bool) -> list[str]:
    """Modules that a file imports, with the names behind `from ... import`; `everywhere`: in functions, too."""
    found: list[str] = []
    body: list[ast.AST] = list(ast.parse(file.read_text(encoding="utf-8")).body)
    while body:
        node = body.pop()
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            body += node.orelse
        elif everywhere or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            body += ast.iter_child_nodes(node)
    return found


def _copy_module(module: str, parts: Path) -> None:
    """A module of marlab into the subpackage, its imports relative; the packages on the way say nothing."""
    file = _file_of(module)
    assert file is not None
    *packages, name = module.split(".")[1:]
    folder = parts
    for package in ("", *packages):
        folder = folder / package
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").write_text("", encoding="utf-8")
    text = _relative(file.read_text(encoding="utf-8"), len(packages) + 1, [])
    (folder / f"{name}.py").write_text(text, encoding="utf-8")


def _relative(text: str, depth: int, beside: list[Path]) -> str:
    """The text of a file with imports of marlab, and of files beside it, made relative; `depth`: packages above it."""
    dots = "." * max(1, depth) if depth else f".{PARTS}."
    if re.search(r"^\s*import marlab\b", text, re.MULTILINE):
        raise UserError("An agent that is to be packed must write `from marlab. ... import ...`, not `import marlab`.")
    text = re.sub(r"^(\s*from )marlab\.", rf"\g<1>{dots}", text, flags=re.MULTILINE)
    for name in (file.stem for file in beside):
        text = re.sub(rf"^(\s*from ){name}( import)", r"\g<1>." + name + r"\g<2>", text, flags=re.MULTILINE)
        text = re.sub(rf"^(\s*)import {name}$", rf"\g<1>from . import {name}", text, flags=re.MULTILINE)
    return text


def versions() -> dict[str, str]:
    """Python and the packages that a submission is made with."""
    from importlib.metadata import version

    names = [name for name in ("scml", "negmas", "numpy") if importlib.util.find_spec(name)]
    return {"python": sys.version.split()[0], **{name: version(name) for name in names}}
