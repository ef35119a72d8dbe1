"""The file with paths comes back as it was written, and a damaged one is one sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from marlab.fish.measure.pathfile import Paths, read_paths
from marlab.lab.errors import UserError
from tests.fish.cases import some_paths


def test_written_and_read_again(tmp_path: Path) -> None:
    paths = some_paths()
    paths.write(tmp_path / "paths.npz")
    again = read_paths(tmp_path / "paths.npz")
    for name, value in vars(paths).items():
        stored = getattr(again, name)
        assert np.array_equal(value, stored, equal_nan=True) if isinstance(value, np.ndarray) else value == stored, name


@pytest.mark.parametrize("damage", ["cut", "text", "schema"])
def test_damaged_files_are_refused_in_a_sentence(damage: str, tmp_path: Path) -> None:
    file = tmp_path / "paths.npz"
    some_paths().write(file)
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:400])
    elif damage == "text":
        file.write_text("nothing")
    else:
        with np.load(file) as stored:
            arrays = {name: stored[name] for name in stored.files}
        np.savez(file, **{**arrays, "about": np.array('{"schema": 99}')})
    with pytest.raises(UserError, match="paths"):
        read_paths(file)


def test_half_precision_is_fine_enough() -> None:
    """A place at the wall is stored to a centimetre: less than a pixel of a large screen."""
    assert float(np.spacing(np.float16(9.9))) < 0.01
    assert set(Paths.__annotations__) >= {"position", "predator", "death"}
