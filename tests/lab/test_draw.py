"""Every kind of run of this package can be drawn again."""

from __future__ import annotations

from marlab.lab.draw import DRAWERS
from tests.lab.drawing import check


def test_every_kind_of_run_has_its_drawer() -> None:
    check("lab", DRAWERS)
