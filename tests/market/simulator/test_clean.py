"""The program that plays a submission: what it notes. Whole trials are in tests/market/submit."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("scml")
from negmas.sao import ResponseType, SAOResponse

from marlab.market.simulator import clean


def test_answers_are_written_alike_whoever_gives_them() -> None:
    offer = SAOResponse(ResponseType.REJECT_OFFER, (3, 4, 5))
    assert clean._plain({"b": offer, "a": None}) == "a: None; b: REJECT_OFFER [3, 4, 5]"
    assert clean._plain(SAOResponse(ResponseType.END_NEGOTIATION, None)) == "END_NEGOTIATION None"
    assert clean._plain((1, 2, 3)) == "[1, 2, 3]"


def test_blocked_modules_cannot_be_imported() -> None:
    with pytest.raises(ModuleNotFoundError, match="not part of a submission"):
        clean.Blocked(["torch"]).find_spec("torch.nn")
    clean.Blocked(["torch"]).find_spec("numpy")


def test_the_program_knows_nothing_of_this_package() -> None:
    assert "marlab" not in Path(clean.__file__).read_text().replace("marlab-", "").split('"""', 2)[2]
    assert sys.modules["marlab.market.simulator.clean"] is clean
