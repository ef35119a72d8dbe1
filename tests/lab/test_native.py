"""C code of ours: built once, kept, checked before it is loaded; a sentence where that cannot be."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import pytest

from marlab.lab import native
from marlab.lab.native import library_of
from tests.lab.search.table_game import needs_compiler

CODE = "int number(void) { return NUMBER; }\n"


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = tmp_path / "number.c"
    file.write_text(CODE)
    yield file
    library_of.cache_clear()


def number(source: Path, value: int) -> int:
    library_of.cache_clear()
    library = library_of(source, f"NUMBER={value}")
    assert isinstance(library, ctypes.CDLL), library
    return int(library.number())


@needs_compiler
def test_built_once_for_its_text_and_its_defines(source: Path, tmp_path: Path) -> None:
    assert number(source, 3) == 3 and number(source, 4) == 4
    libraries = sorted((tmp_path / "cache" / "marlab").glob("*.so"))
    times = [library.stat().st_mtime_ns for library in libraries]
    assert len(libraries) == 2 and number(source, 3) == 3
    assert [library.stat().st_mtime_ns for library in libraries] == times
    source.write_text(CODE.replace("NUMBER;", "2 * NUMBER;"))
    assert number(source, 3) == 6


@needs_compiler
def test_a_damaged_library_in_the_cache_is_built_again(source: Path, tmp_path: Path) -> None:
    assert number(source, 3) == 3
    (library,) = (tmp_path / "cache" / "marlab").glob("*.so")
    whole = library.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", whole[:-1] + b"x"):
        library.unlink()  # a new file: the old one is mapped into this process
        library.write_bytes(damaged)
        assert not native._intact(library)
    assert number(source, 3) == 3 and native._intact(library)


@needs_compiler
def test_why_there_is_none(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source.write_text("this is no C")
    assert "the compiler said" in str(library_of(source))
    (tmp_path / "cache" / "marlab").chmod(0o777)
    assert "others may write" in str(library_of(source, "A=1"))
    monkeypatch.setattr("marlab.lab.native.shutil.which", lambda name: None)
    assert library_of(source, "B=1") == "no C compiler was found"


def test_who_has_no_home_is_told_so(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container a process may run as a user that the system does not know."""
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    assert "home" in str(library_of(source, "C=1"))
