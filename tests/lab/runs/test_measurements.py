"""A measurement is found again by its key and the code that made it, and only by them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from marlab.lab.errors import UserError
from marlab.lab.runs.measurements import Measurements, key_seed


def test_what_was_put_is_found_by_another_process(tmp_path: Path) -> None:
    Measurements(tmp_path / "a").put({"x": [1, 2.5]}, "score", 3, ("NS", "NH"))
    Measurements(tmp_path / "b").put(7, "other")
    measurements = Measurements(tmp_path / "a", [tmp_path / "b"])
    assert measurements.get("score", 3, ("NS", "NH")) == {"x": [1, 2.5]}
    assert measurements.get("other") == 7 and measurements.reused == 2
    assert measurements.get("score", 4, ("NS", "NH")) is None


def test_other_code_measures_again_and_draws_the_same(tmp_path: Path) -> None:
    old, new = (Measurements(tmp_path, code=code) for code in ("old", "new"))
    old.put(1, "score")
    assert new.get("score") is None
    new.put(2, "score")
    assert (old.get("score"), new.get("score")) == (1, 2) and new.unused() == 1
    assert key_seed("score", 1) == key_seed("score", 1) != key_seed("score", 2)
    assert 0 <= key_seed("score", 1) < 2**63


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    measurements = Measurements(tmp_path)
    measurements.put(1, "one")
    [file] = tmp_path.iterdir()
    for text, why in (("{", "not valid JSON"), ("[]", "not a measurement")):
        file.write_text(text)
        with pytest.raises(UserError, match=rf"{file.name}.*{why}.*remove it"):
            Measurements(tmp_path).get("one")


def test_what_is_known_is_not_made_again(tmp_path: Path) -> None:
    kept = Measurements(tmp_path)
    assert kept.measured(torch.get_num_threads, "threads") == 1
    assert Measurements(tmp_path).measured(lambda: pytest.fail("made again"), "threads") == 1
