"""Pictures of what a run of models of others has."""

from __future__ import annotations

from pathlib import Path


def test_a_run_without_codes_and_beliefs_draws_neither(type_run: Path) -> None:
    names = {path.name for path in (type_run / "figures").glob("*.png")}
    assert names == {"losses.png", "epochs.png", "predictions.png"}
    assert all(path.stat().st_size > 1000 for path in (type_run / "figures").glob("*.png"))
