"""Figures of a tournament."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.market.arena.figures import draw
from tests.market.result_cases import some_result


@pytest.mark.parametrize("configs", [1, 3])  # without and with intervals
def test_both_figures_are_drawn(tmp_path: Path, configs: int) -> None:
    draw(some_result(configs), tmp_path / "scores.png", tmp_path / "parts.png")
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in ("scores.png", "parts.png"))
