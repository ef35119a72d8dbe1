"""The pins hold: help texts to the letter, tiny trainings to the bit (on another processor to four digits)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import pins

ALL = [words for words, _ in pins.commands()]


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_help_is_as_pinned(words: tuple[str, ...]) -> None:
    assert pins.help_text(words) == pins.help_file(words).read_text()


def test_no_pin_without_a_command() -> None:
    assert {path.name for path in (pins.PINS / "help").iterdir()} == {pins.help_file(words).name for words in ALL}


def _close(found: Any, pinned: Any, where: str) -> None:
    if isinstance(pinned, dict):
        assert set(found) == set(pinned), where
        for key in pinned:
            _close(found[key], pinned[key], f"{where}/{key}")
    elif isinstance(pinned, list):
        assert len(found) == len(pinned), where
        for i, (a, b) in enumerate(zip(found, pinned)):
            _close(a, b, f"{where}/{i}")
    elif isinstance(pinned, float):
        assert found == pytest.approx(pinned, rel=1e-3, abs=1e-4, nan_ok=True), where
    else:
        assert found == pinned, where


def _without_digests(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_digests(v) for k, v in value.items() if k not in ("weights", "machine")}
    return value


@pytest.mark.parametrize("name", pins.TRAININGS)
def test_trainings_are_as_pinned(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pinned = pins.todays_names(json.loads((pins.PINS / f"{name}.json").read_text()))
    found = json.loads(json.dumps(pins.TRAININGS[name]()))
    if pinned.pop("machine") == pins.machine():
        assert json.dumps(found, sort_keys=True) == json.dumps(pinned, sort_keys=True)
    _close(_without_digests(found), _without_digests(pinned), name)
