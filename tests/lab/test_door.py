"""A world's front door: names that are imported when they are used, rooms that can be called, shipped weights."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from marlab.lab.door import lazy_names, make_callable, nothing_called, resolve, shipped_file, shipped_names


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    module = types.ModuleType("a_world")
    monkeypatch.setitem(sys.modules, "a_world", module)
    yield module


def test_targets_may_have_dots() -> None:
    assert resolve("os.path:join") is __import__("os").path.join
    assert resolve("pathlib:Path.cwd") == Path.cwd
    with pytest.raises(AttributeError):
        resolve("os:no_such_name")


def test_names_are_imported_when_used(package: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    package.__getattr__, package.__dir__ = lazy_names("a_world", {"square": "a_world.numbers:square"})  # type: ignore[method-assign]
    assert "square" in dir(package)
    with pytest.raises(ModuleNotFoundError):  # only now is it looked for
        _ = package.square
    numbers = types.ModuleType("a_world.numbers")
    numbers.square = lambda x: x * x  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "a_world.numbers", numbers)
    assert package.square(3) == 9
    with pytest.raises(AttributeError, match="module 'a_world' has no attribute 'cube'"):
        _ = package.cube


def test_a_room_can_be_called_like_its_function(package: types.ModuleType) -> None:
    make_callable("a_world", "builtins:max")
    assert package(3, 5, key=lambda x: -x) == 3  # type: ignore[operator]
    assert package.__name__ == "a_world"


def test_shipped_weights_by_name(tmp_path: Path) -> None:
    (tmp_path / "second.pt").touch()
    (tmp_path / "first.pt").touch()
    (tmp_path / "first.md").touch()
    assert shipped_names(tmp_path) == ["first", "second"]
    assert shipped_file("first", tmp_path) == tmp_path / "first.pt"
    assert shipped_file("third", tmp_path) is shipped_file("../first", tmp_path) is None
    assert str(nothing_called("third", tmp_path, "a run")) == (
        "There is no 'third': expected a run, or one of the shipped first, second."
    )
    assert "(there are none)" in str(nothing_called("x", tmp_path / "empty", "a run"))
