"""Configs: strictness, presets, differences and hashes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marlab.lab.config import config_hash, defaults_of, diff, flatten, from_dict, load_preset, to_dict
from marlab.lab.errors import UserError


@dataclass(frozen=True)
class Inner:
    lr: float = 1e-3
    sizes: tuple[int, ...] = (64, 64)


@dataclass(frozen=True)
class Outer:
    steps: int = 10
    mode: Literal["fast", "slow"] = "fast"
    folder: Path | None = None
    inner: Inner = field(default_factory=Inner)
    pair: tuple[str, float] = ("a", 1.0)
    flag: bool = False

    def __post_init__(self) -> None:
        if self.flag and self.mode == "slow":
            raise UserError("flag cannot be combined with mode slow.")


def test_round_trip() -> None:
    config = Outer(steps=3, mode="slow", folder=Path("x/y"), inner=Inner(0.5, (1, 2, 3)), pair=("b", 2.5))
    assert from_dict(Outer, to_dict(config), "here") == config


@given(
    steps=st.integers(),
    lr=st.floats(allow_nan=False, allow_infinity=False),
    sizes=st.lists(st.integers(), max_size=5),
    text=st.text(),
    flag=st.booleans(),
)
def test_round_trip_of_anything(steps: int, lr: float, sizes: list[int], text: str, flag: bool) -> None:
    config = Outer(steps=steps, inner=Inner(lr, tuple(sizes)), pair=(text, lr), flag=flag)
    assert from_dict(Outer, to_dict(config), "here") == config


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"stepz": 3}, "unknown key 'stepz', did you mean 'steps'?"),
        ({"inner": {"l": 1.0}}, "unknown key 'inner.l'"),
        ({"steps": 3.5}, "'steps' is 3.5, expected a whole number"),
        ({"steps": True}, "'steps' is True, expected a whole number"),
        ({"inner": {"lr": "x"}}, "'inner.lr' is 'x', expected a number"),
        ({"inner": {"lr": 10**400}}, "expected a finite number"),
        (3, "'3' stands where a table of settings should be"),  # type: ignore[list-item]
        ({"inner": {"sizes": [1, "2"]}}, "'inner.sizes[1]' is '2', expected a whole number"),
        ({"inner": 3}, "'inner' is 3, expected a table of fields"),
        ({"mode": "medium"}, "'mode' is 'medium', expected one of 'fast', 'slow'"),
        ({"pair": ["a"]}, "expected a list of 2 values"),
        ({"folder": 4}, "'folder' is 4, expected a path"),
        ({"flag": True, "mode": "slow"}, "flag cannot be combined"),
    ],
)
def test_wrong_input_is_one_sentence(data: dict[str, object], says: str) -> None:
    with pytest.raises(UserError) as caught:
        from_dict(Outer, data, "preset p")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_field_without_default() -> None:
    @dataclass(frozen=True)
    class Needy:
        path: str

    with pytest.raises(UserError, match="'path' is missing"):
        from_dict(Needy, {}, "file")


def test_whole_number_is_a_number() -> None:
    assert from_dict(Inner, {"lr": 1}, "here").lr == 1.0


def test_base_keeps_what_is_not_named() -> None:
    base = Outer(steps=7, inner=Inner(0.1, (5,)))
    changed = from_dict(Outer, {"inner": {"lr": 0.2}}, "here", base)
    assert changed == Outer(steps=7, inner=Inner(0.2, (5,)))


def test_presets(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text('inferred = ["steps"]\nsteps = 4\n[inner]\nlr = 0.25\n')
    preset = load_preset("small", tmp_path)
    assert preset.inferred == ("steps",)
    assert from_dict(Outer, preset.values, "preset small") == Outer(steps=4, inner=Inner(lr=0.25))
    assert load_preset(str(tmp_path / "small.toml"), None).values == preset.values


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("smal", "did you mean 'small'?"),
        ("nothing.toml", "does not exist"),
        ("broken.toml", "not valid TOML"),
        ("marks.toml", "marks 'steps' as inferred but does not set it"),
    ],
)
def test_bad_presets(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "small.toml").write_text("steps = 4\n")
    (tmp_path / "broken.toml").write_text("steps = = 4\n")
    (tmp_path / "marks.toml").write_text('inferred = ["steps"]\n')
    with pytest.raises(UserError) as caught:
        load_preset(str(tmp_path / name) if name.endswith(".toml") else name, tmp_path)
    assert says in str(caught.value)


def test_diff_and_hash() -> None:
    a, b = Outer(), Outer(inner=Inner(lr=0.5))
    assert diff(to_dict(a), to_dict(b)) == [("inner.lr", 1e-3, 0.5)]
    assert diff({"x": None}, {}) == [("x", None, None)]
    assert flatten(to_dict(a))["inner.sizes"] == [64, 64]
    assert config_hash(a) == config_hash(Outer()) != config_hash(b)
    assert defaults_of(Outer) == to_dict(Outer())
