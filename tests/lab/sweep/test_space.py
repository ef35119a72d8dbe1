"""What `--set` may say: lists, ranges, draws, seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from marlab.lab.errors import UserError
from marlab.lab.sweep.space import Range, Values, check_axes, drawn, grid, parse_axis, parse_seeds, shown


def test_lists_ranges_and_json() -> None:
    assert parse_axis("learning-rate=1e-4, 1e-3") == Values("learning_rate", ("1e-4", "1e-3"))
    assert parse_axis("--ppo.gamma=0.9") == Values("ppo.gamma", ("0.9",))
    assert parse_axis("n=2..5") == Range("n", 2, 5, log=False, whole=True)
    assert parse_axis("lr=1e-5..1e-3:log") == Range("lr", 1e-5, 1e-3, log=True, whole=False)
    assert parse_axis('curriculum=["15:12,20:3", ""]') == Values("curriculum", ("15:12,20:3", ""))
    assert parse_axis("hidden=[[8, 8], [16]]") == Values("hidden", ((8, 8), (16,)))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("lr", "expected NAME=VALUE"), ("=3", "expected NAME=VALUE"), ("lr=", "expected NAME=VALUE"),
        ("lr=1,,2", "missing between commas"), ("lr=1,1", "names a value twice"), ("lr=3..1", "the smaller one first"),
        ("lr=0..1:log", "two positive numbers"), ("lr=[1,", "is not JSON"), ("lr=[]", "one value or more"),
        ("lr=1e999..2", "two numbers"),
    ],
)  # fmt: skip
def test_what_cannot_be_read(text: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        parse_axis(text)


def test_the_grid_has_every_combination_once() -> None:
    axes = [parse_axis("a=1,2"), parse_axis("b=x"), parse_axis("c=3..5")]
    found = list(grid(axes))
    assert (
        len(found) == 6 and found[0] == {"a": "1", "b": "x", "c": "3"} and found[-1] == {"a": "2", "b": "x", "c": "5"}
    )
    assert list(grid([])) == [{}]
    with pytest.raises(UserError, match="use --draws"):
        list(grid([parse_axis("a=1..200"), parse_axis("b=1..200")]))


def test_axes_that_do_not_fit_together() -> None:
    with pytest.raises(UserError, match="names a twice"):
        check_axes([parse_axis("a=1"), parse_axis("a=2")], None)
    for text in ("a=0.1..0.2", "a=1..100:log"):
        with pytest.raises(UserError, match="with --draws"):
            check_axes([parse_axis(text)], None)
        check_axes([parse_axis(text)], 3)


def test_draws_are_seeded_extend_and_fill_their_ranges() -> None:
    axes = [parse_axis("lr=1e-5..1e-1:log"), parse_axis("n=2..4"), parse_axis("x=-1.5..2"), parse_axis("kind=a,b")]
    few, many = list(drawn(axes, 3, 7)), list(drawn(axes, 400, 7))
    assert few == many[:3] and few != list(drawn(axes, 3, 8))
    logs = [math.log10(float(each["lr"])) for each in many]
    assert -5 <= min(logs) < -4.8 and -1.2 < max(logs) <= -1 and abs(np.mean(logs) + 3) < 0.2
    assert {each["n"] for each in many} == {"2", "3", "4"} and {each["kind"] for each in many} == {"a", "b"}
    assert -1.5 <= min(float(each["x"]) for each in many) < -1.4


def test_seeds() -> None:
    assert parse_seeds("0..3") == (0, 1, 2, 3) and parse_seeds("5,1") == (5, 1) and parse_seeds("7") == (7,)
    for wrong in ("", "3..1", "a", "1,1", "-1", "1..", "0..99999"):
        with pytest.raises(UserError, match="--seeds is"):
            parse_seeds(wrong)


def test_settings_for_people() -> None:
    assert shown({"a": "1", "b": 2}) == "a=1, b=2" and shown({}) == "default"
