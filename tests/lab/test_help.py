"""Help made from dataclasses: the text under a field, its default, and what the short help leaves out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import pytest

from marlab.lab.help import Part, docs_of, help_text


@dataclass(frozen=True)
class Base:
    """The first paragraph.

    What only readers of the source see.
    """

    seed: int = 1
    """Seed of
    everything."""
    plain: float = 0.5


@dataclass(frozen=True)
class Config(Base):
    """Catch fish."""

    COMMON: ClassVar = ("boats", "dry")

    data: Path = Path("sea")
    """Where the fish are."""
    boats: tuple[int, ...] = (1, 2)
    """How many."""
    kind: Literal["cod", "eel"] | None = None
    """Of which kind."""
    dry: bool = False
    """Only pretend."""


def test_the_text_under_a_field_explains_it() -> None:
    assert docs_of(Config) == {
        "seed": "Seed of everything.",
        "data": "Where the fish are.",
        "boats": "How many.",
        "kind": "Of which kind.",
        "dry": "Only pretend.",
    }


def test_short_help_shows_the_common_flags_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    text = help_text("marlab catch", [Part(Config)], positional=("data",), presets=("deep",))
    assert text.splitlines()[0] == "usage: marlab catch DATA [--preset NAME|FILE] [flags]"
    assert "one of deep, or a TOML file" in text
    flags = [line.split("  ")[1] for line in text.splitlines() if line.startswith("  --")]
    assert flags == ["--preset NAME|FILE", "--boats N ...", "--[no-]dry"]
    assert "How many. (1 2)" in text and "Only pretend. (off)" in text
    assert text.endswith("`marlab catch --help-all` shows 3 more flags.")


def test_full_help_shows_all_and_says_what_values_look_like(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    text = help_text("marlab catch", [Part(Config, Config(seed=7))], everything=True)
    assert "Seed of everything. (7)" in text and "--kind {cod,eel}" in text and "--data PATH" in text
    assert "--plain X" in text and "help-all" not in text


def test_a_common_flag_that_does_not_exist_is_a_mistake() -> None:
    @dataclass(frozen=True)
    class Wrong(Base):
        COMMON: ClassVar = ("boat",)

    with pytest.raises(AssertionError, match="boat"):
        help_text("marlab catch", [Part(Wrong)])
