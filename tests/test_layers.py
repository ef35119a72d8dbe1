"""The layers, read from every import in the source: who may know whom.

`lab` knows no world, worlds do not know each other, a package of a world imports only packages that stand before it in
PACKAGES, and a few libraries are known in a few places only. Imports inside functions count, and so do targets that are
named as "module:function" (the command line, the work of a command); what only a type checker reads does not.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"
MOST_MODULES = 20

PACKAGES = {
    "fish": "sea envs schedule starts measure training commands",
    "hunt": "game players exact data others pretraining world_model ppo planner selfplay evaluate training diagnose "
    "watch seat",
    "market": "logs rules vector envs simulator collect networks samples learn clones agent arena online "
    "distill fidelity habits replay submit verify guide",
}
"""A package imports only from itself and from packages to its left; modules beside them may import all of them."""

KNOWN_IN = {  # libraries, and the only places that import them
    ("scml", "scml_agents", "negmas"): (
        "marlab.market.simulator",
        "marlab.market.agent.agent",
        "marlab.market.arena.official",
    ),
    ("shtab",): ("marlab.completion",),
    ("jinja2", "markdown_it", "html", "markupsafe", "plotly"): ("marlab.lab.report", "marlab.lab.notebook"),
}

CORES = ("marlab.fish.sea", "marlab.hunt.game", "marlab.lab.search", "marlab.lab.ppo", "marlab.market.vector")
"""Batched cores: they need torch and numpy and nothing else that must be installed."""
PICTURES = ("marlab.hunt.game.render",)
"""Draws what a core computes, beside it; no core imports it."""

TARGET = re.compile(r"(marlab(?:\.\w+)+):\w+")


@cache
def modules() -> dict[str, Path]:
    """All modules of the source by their dotted names, packages included."""
    found = {}
    for path in sorted(SRC.rglob("*.py")):
        parts = path.relative_to(SRC).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def nodes_that_run(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node, without what stands under `if TYPE_CHECKING:`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            todo: list[ast.AST] = list(node.orelse)
        else:
            todo = [node]
        for each in todo:
            yield each
            yield from nodes_that_run(each)


def names_in(source: str, package: str) -> Iterator[str]:
    """The dotted names that a module's text imports; `package` is where its relative imports begin."""
    for node in nodes_that_run(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:  # a name of the module, or a module of the package
                full = f"{origin}.{alias.name}"
                yield full if full in modules() else origin
        elif isinstance(node, ast.Constant) and (target := TARGET.fullmatch(str(node.value))):
            yield target[1]


@cache
def imports() -> frozenset[tuple[str, str]]:
    """All pairs (importer, imported), with imported modules of ours named in full."""
    pairs = set()
    for name, path in modules().items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        pairs |= {(name, imported) for imported in names_in(path.read_text(), package)}
    return frozenset(pairs)


def inside(module: str, places: tuple[str, ...] | str) -> bool:
    all_places = (places,) if isinstance(places, str) else places
    return any(module == place or module.startswith(place + ".") for place in all_places)


def world_and_package(module: str) -> tuple[str, str]:
    """("fish", "sea") for marlab.fish.sea.world; "" stands for what is beside the packages or worlds."""
    parts = module.split(".")
    if parts[0] != "marlab" or len(parts) < 2 or parts[1] not in PACKAGES:
        return "", ""
    package = ".".join(parts[:3])
    is_package = len(parts) > 2 and package in modules() and modules()[package].name == "__init__.py"
    return parts[1], parts[2] if is_package else ""


def breaks_a_layer(importer: str, imported: str) -> bool:
    """Whether this import goes to another world, out of lab, or to a package further down."""
    if not inside(imported, "marlab"):
        return False
    (world, package), (its_world, its_package) = world_and_package(importer), world_and_package(imported)
    if inside(importer, "marlab.lab"):
        return not inside(imported, "marlab.lab") and imported != "marlab"
    if not world:  # the command line and the quickstart stand below all worlds
        return False
    if not its_world:
        return not inside(imported, "marlab.lab") and imported != "marlab"
    if world != its_world:
        return True
    if not package or package == its_package:
        return False
    order = PACKAGES[world].split()
    return not its_package or order.index(its_package) > order.index(package)


def breaks_a_library_rule(importer: str, imported: str) -> bool:
    library = imported.split(".")[0]
    for libraries, places in KNOWN_IN.items():
        if library in libraries and not inside(importer, places):
            return True
    if inside(importer, CORES) and not inside(importer, PICTURES):
        return library not in {"marlab", "torch", "numpy"} | set(sys.stdlib_module_names)
    return False


def test_every_package_has_its_place() -> None:
    for world, order in PACKAGES.items():
        folders = {path.parent.name for path in (SRC / "marlab" / world).glob("*/__init__.py")}
        assert folders == set(order.split()), f"the packages of {world}"


def test_imports_keep_the_layers() -> None:
    broken = {pair for pair in imports() if breaks_a_layer(*pair) or breaks_a_library_rule(*pair)}
    assert sorted(broken) == []


def test_packages_of_the_lab_have_an_order() -> None:
    packages = {".".join(name.split(".")[:3]) for name in modules() if inside(name, "marlab.lab")} - {"marlab.lab"}
    graph = {
        package: {
            other
            for importer, imported in imports()
            for other in packages
            if inside(importer, package) and inside(imported, other) and other != package
        }
        for package in packages
    }
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"these import each other: {error.args[1]}")


def test_no_package_is_crowded() -> None:
    crowded = {
        str(folder.relative_to(SRC)): count
        for folder in {path.parent for path in modules().values()}
        if (count := len([path for path in folder.glob("*.py") if path.name != "__init__.py"])) > MOST_MODULES
    }
    assert crowded == {}


def test_the_reader_of_imports_sees_what_it_should() -> None:
    text = """
from typing import TYPE_CHECKING
import torch.nn as nn
from marlab.lab import errors
from marlab.lab.errors import UserError
from . import config
if TYPE_CHECKING:
    import scml
def work():
    from marlab.hunt.game.rules import Game
main = Command("marlab.fish.training.train:main", "not a target: marlab.fish.nothing")
"""
    assert set(names_in(text, "marlab.lab")) == {
        "typing",
        "torch.nn",
        "marlab.lab.errors",
        "marlab.lab.config",
        "marlab.hunt.game.rules",
        "marlab.fish.training.train",
    }


@pytest.mark.parametrize(
    ("importer", "imported", "broken"),
    [
        ("marlab.lab.stats", "marlab.fish.sea.config", True),
        ("marlab.lab.stats", "marlab.lab.errors", False),
        ("marlab.fish.sea.config", "marlab.hunt.game.config", True),
        ("marlab.fish.sea.config", "marlab.fish.training.train", True),
        ("marlab.fish.training.train", "marlab.fish.sea.config", False),
        ("marlab.fish.training.train", "marlab.cli", True),
        ("marlab.fish", "marlab.fish.training.train", False),
        ("marlab.fish.sea.config", "marlab.fish", True),
        ("marlab.quickstart.command", "marlab.market.arena.play", False),
    ],
)
def test_the_rules_tell_right_from_wrong(importer: str, imported: str, broken: bool) -> None:
    assert breaks_a_layer(importer, imported) is broken


def test_pictures_are_no_part_of_a_core() -> None:
    assert not [pair for pair in imports() if inside(pair[0], CORES) and inside(pair[1], PICTURES)]


def test_libraries_stay_where_they_belong() -> None:
    assert breaks_a_library_rule("marlab.market.rules.l1", "scml.std")
    assert not breaks_a_library_rule("marlab.market.simulator.awi", "negmas")
    assert breaks_a_library_rule("marlab.fish.sea.world", "matplotlib.pyplot")
    assert not breaks_a_library_rule("marlab.fish.sea.world", "torch.nn")
