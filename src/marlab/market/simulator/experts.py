"""Who plays: finding agent classes by name, and the roster of experts that a collection plays by default.

Names are understood in this order: `module:Class` or `package.module.Class` (anything importable, files of the current
folder too), `LitaAgentHRL`, the agents that come with the simulator, and the classes of the Standard league of
scml-agents 2024-2026. scml-agents is optional: without it the built-in agents still work. Parameters of an agent's
constructor may follow its name, and a short name for tables may stand before it: `mine=my_agent:Mine(key=value, ...)`.
"""

from __future__ import annotations

import ast
import difflib
import functools
import importlib
import importlib.util
import inspect
import re
import sys
import traceback
from pathlib import Path
from typing import Any

from marlab.lab.errors import UserError
from marlab.lab.extras import need

PENGUIN = "PenguinAgent"
FILLERS = ("GreedyStdAgent", "RandomStdAgent", "SyncRandomStdAgent")
"""The built-in agents that complete the worlds of the league."""
TOP_2025 = ("AS0", "PenguinAgent", "XenoSotaAgent", "UltraSuperMiracleSoraFinalAgentZ", "PriceTrendStdAgent")
TOP_2024 = ("PenguinAgent", "CautiousStdAgent", "DogAgent", "AX", "QuickDecisionAgent")
LITA = ("LitaAgentY", "LitaAgentP", "LitaAgentYR", "LitaAgentN", "LitaAgentCIR")
"""The LitaAgents that scml-agents carries; those that it does not carry are left out of the roster."""
YEARS = (2024, 2025, 2026)
HOW_TO_INSTALL = (
    "PenguinAgent and the other entrants come with scml-agents: pip install --no-deps scml-agents==0.5.2 "
    "(without --no-deps it brings 4 GB that no agent needs)."
)
OWN = ("LitaAgentHRL",)
"""Agents that the market itself offers, under `marlab.market`."""
_ALIAS = re.compile(r"\s*([A-Za-z][\w-]*)\s*=(?!=)\s*(.+)", re.DOTALL)
_CLASS = re.compile(r"^class (\w+)\(", re.MULTILINE)


def have_entrants() -> bool:
    """Whether scml-agents is installed."""
    return importlib.util.find_spec("scml_agents") is not None


def roster(max_top_2025: int = 5, max_top_2024: int = 5) -> list[str]:
    """The default competitors: LitaAgents, the best of 2025 and 2024, and two built-in agents, each once.

    Names that cannot be found here (a LitaAgent that was never published) are left out.
    """
    names = [*LITA, *TOP_2025[:max_top_2025], *TOP_2024[:max_top_2024], "RandomStdAgent", "SyncRandomStdAgent"]
    known = {*builtin_agents(), *entrants(), *_definitions()}
    return [name for name in dict.fromkeys(names) if name in known]


@functools.cache
def builtin_agents() -> dict[str, str]:
    """Agents that come with the simulator: name -> `module:Class`."""
    need("market", "The market's simulator")
    module = importlib.import_module("scml.std.agents")
    classes = {name: getattr(module, name) for name in module.__all__}
    return {name: address(cls) for name, cls in classes.items() if _plays_standard(cls)}


@functools.cache
def entrants() -> dict[str, str]:
    """The submitted agent of every Standard team of 2024-2026: name -> `module:Class`; nothing is imported."""
    if not have_entrants():
        return {}
    get_agents = importlib.import_module("scml_agents").get_agents
    paths = [path for year in YEARS for path in get_agents(year, track="std", as_class=False)]
    return {path.rpartition(".")[2]: ":".join(path.rpartition(".")[::2]) for path in paths}


@functools.cache
def _definitions() -> dict[str, list[str]]:
    """Every class that the Standard folders of scml-agents 2024-2026 define: name -> addresses, by reading files."""
    places: dict[str, list[str]] = {}
    spec = importlib.util.find_spec("scml_agents")
    if spec is None or not spec.submodule_search_locations:
        return places
    root = Path(spec.submodule_search_locations[0])
    for year in YEARS:
        for file in sorted((root / f"scml{year}" / "standard").rglob("*.py")):
            parts = file.relative_to(root.parent).with_suffix("").parts
            if all(part.isidentifier() for part in parts):
                for name in _CLASS.findall(file.read_text(encoding="utf-8", errors="replace")):
                    places.setdefault(name, []).append(f"{'.'.join(parts).removesuffix('.__init__')}:{name}")
    return places


def find_agent(name: str) -> type:
    """The class behind a name; one sentence with near matches for an unknown one."""
    need("market", "The market's simulator")
    if ":" in name or "." in name:
        return _checked(_imported(name), name)
    if name in OWN:
        return _checked(getattr(importlib.import_module(__name__.partition(".simulator")[0]), name), name)
    for known in (builtin_agents(), entrants()):
        if name in known:
            return _checked(_imported(known[name]), name)
    places = _definitions().get(name, [])
    if not places:
        raise UserError(_unknown(name))
    if len(places) > 1:
        raise UserError(f"There are {len(places)} classes {name}; say which one: {', '.join(places)}.")
    return _checked(_imported(places[0]), name)


def find_player(text: str) -> tuple[type, dict[str, Any]]:
    """The class and the constructor's parameters behind `Name` or `Name(key=value, ...)`, with or without an alias.

    Values are Python literals; whatever is none (heuristic, runs/a/best.pt) is a text.
    """
    name, parenthesis, rest = split_alias(text)[1].partition("(")
    if parenthesis and not rest.endswith(")"):
        raise UserError(f"The agent {text} has an open parenthesis, expected Name(key=value, ...).")
    values: dict[str, Any] = {}
    for part in _parts(rest[:-1]):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key.isidentifier() or not value or key in values:
            raise UserError(f"The agent {text} has the parameter '{part.strip()}', expected key=value, each key once.")
        try:
            values[key] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            values[key] = value
    return find_agent(name.strip()), values


def split_alias(text: str) -> tuple[str, str]:
    """The short name before a player, empty if there is none, and the player: `mine=my_agent:Mine(x=1)`."""
    found = _ALIAS.fullmatch(text) if "=" in text.partition("(")[0] else None
    return (found[1], found[2].strip()) if found else ("", text.strip())


def full_name(text: str) -> str:
    """The same player as `module:Class`, with its parameters as they were written."""
    cls, _ = find_player(text)
    _, parenthesis, rest = split_alias(text)[1].partition("(")
    return address(cls) + parenthesis + rest


def _parts(text: str) -> list[str]:
    """What stands between commas, not counting commas inside brackets or quotes."""
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote or letter in "'\"":
            quote = "" if letter == quote else quote or letter
        depth += (letter in "([{") - (letter in ")]}") if not quote else 0
        if letter == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return [part for part in parts if part.strip()]


def address(cls: type) -> str:
    """`module:Class`, from which any process can import the class."""
    return f"{cls.__module__}:{cls.__qualname__}"


def _imported(name: str) -> type:
    module, _, attribute = name.rpartition(":" if ":" in name else ".")
    if not all(part.isidentifier() for part in (*module.split("."), *attribute.split("."))):
        raise UserError(f"The agent '{name}' is not named as module:Class or package.module.Class.")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)  # an agent of one's own lies where one works; the installed command does not look there
    try:
        target: object = importlib.import_module(module)
    except ImportError as error:
        hint = f" {HOW_TO_INSTALL}" if module.startswith("scml_agents") and not have_entrants() else ""
        raise UserError(f"The agent {name} cannot be imported: {error}.{hint}") from None
    except Exception as error:  # a mistake in somebody's module
        where = traceback.extract_tb(error.__traceback__)[-1]
        told = f"{type(error).__name__}: {error} ({Path(where.filename).name}, line {where.lineno})"
        raise UserError(f"The agent {name} cannot be imported, its module fails with {told}.") from None
    for part in attribute.split("."):
        if not hasattr(target, part):
            raise UserError(f"The module {module} has no class {attribute}.")
        target = getattr(target, part)
    if not isinstance(target, type):
        raise UserError(f"{name} is not a class, expected an agent class as module:Class.")
    return target


def _checked(cls: type, name: str) -> type:
    if not _plays_standard(cls):
        bases = {base.__name__ for base in cls.__mro__}
        kind = "no agent"
        if "SCML2020Agent" in bases:
            kind = "an agent of the 2020 API"
        elif "OneShotAgent" in bases:
            kind = "a OneShot agent"
        raise UserError(f"{name} is {kind}, expected a subclass of scml.std.StdAgent.")
    if inspect.isabstract(cls):
        raise UserError(f"{name} is abstract (it lacks {', '.join(sorted(cls.__abstractmethods__))}).")  # type: ignore[attr-defined]
    return cls


def _plays_standard(cls: object) -> bool:
    """Two entrants of the Standard track derive from the OneShot base class; no other OneShot agent belongs here."""
    if not isinstance(cls, type):
        return False
    if issubclass(cls, importlib.import_module("scml.std").StdAgent):
        return True
    entered = cls.__module__.startswith("scml_agents.") and ".standard." in cls.__module__
    return entered and issubclass(cls, importlib.import_module("scml.oneshot").OneShotAgent)


def _unknown(name: str) -> str:
    known = sorted({*OWN, *builtin_agents(), *entrants(), *_definitions()})
    near = difflib.get_close_matches(name, known, n=3)
    lower = [other for other in known if other.lower() == name.lower()]
    suggestion = f"; did you mean {' or '.join(dict.fromkeys([*lower, *near]))}?" if lower or near else "."
    if have_entrants():
        return f"There is no agent {name}{suggestion}"
    return f"There is no agent {name} here{suggestion} {HOW_TO_INSTALL}"
