"""The phases of a curriculum."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marlab.fish.schedule.phases import parse_curriculum, phase_at
from marlab.lab.errors import UserError
from tests.fish.schedule.test_curriculum import PHASES, R2


def test_the_curriculum_of_the_main_run() -> None:
    ranges = [(p.num_fish, p.first, p.last) for p in PHASES]
    assert ranges == [
        (15, 1, 9), (20, 10, 19), (25, 20, 28), (25, 29, 36), (25, 37, 44), (25, 45, 52), (25, 53, 60),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "total"), [(R2, 61), ("15", 15), ("0:5", 5), ("15:-1", 15), ("15:0", 15), ("a:3", 3), ("15:3:2", 3)]
)
def test_a_wrong_curriculum_is_one_sentence(text: str, total: int) -> None:
    with pytest.raises(UserError) as error:
        parse_curriculum(text, total, 25)
    assert "curriculum" in str(error.value)
    assert str(error.value).count(".") <= 1


def test_an_empty_curriculum_is_one_phase() -> None:
    (phase,) = parse_curriculum("", 7, 30)
    assert (phase.index, phase.num_fish, phase.first, phase.last) == (1, 30, 1, 7)


@given(st.lists(st.tuples(st.integers(1, 99), st.integers(1, 40)), min_size=1, max_size=12))
def test_phases_tile_the_iterations(pairs: list[tuple[int, int]]) -> None:
    text = ",".join(f"{fish}:{iterations}" for fish, iterations in pairs)
    total = sum(iterations for _, iterations in pairs)
    phases = parse_curriculum(text, total, 25)
    owners = [phase_at(phases, i) for i in range(1, total + 1)]
    assert [p.num_fish for p in owners] == [fish for fish, iterations in pairs for _ in range(iterations)]
    assert all(p.first <= i <= p.last for i, p in enumerate(owners, start=1))
    with pytest.raises(UserError):
        parse_curriculum(text, total + 1, 25)
