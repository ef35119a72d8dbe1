"""The guide's files of samples: nothing is lost, and a damaged one is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marlab.lab.errors import UserError
from marlab.market.samples.npz import load_l4_samples, load_samples, save_l4_samples, save_samples
from marlab.market.samples.records import L4Samples, MacroSamples, MicroSamples
from tests.market.learn_cases import labelled_samples
from tests.market.sample_tools import records_equal


def test_files_keep_every_record(tmp_path: Path) -> None:
    samples = labelled_samples()
    macro, micro, calls = MacroSamples.view(samples), MicroSamples.view(samples), L4Samples.view(samples)
    save_samples(macro, micro, tmp_path)
    save_l4_samples(calls, tmp_path)
    macro_again, micro_again = load_samples(tmp_path)
    for made, again in ((macro, macro_again), (micro, micro_again), (calls, load_l4_samples(tmp_path))):
        assert len(made) == len(again) and all(records_equal(made[i], again[i]) for i in range(0, len(made), 17))


def test_a_wrong_horizon_and_a_missing_folder_are_refused(tmp_path: Path) -> None:
    macro = MacroSamples.view(labelled_samples())
    with pytest.raises(UserError, match="look 40 days ahead, horizon is 20; give horizon=40"):
        save_samples(macro, [], tmp_path, horizon=20)
    with pytest.raises(UserError, match="holds neither l2_samples"):
        load_samples(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("file", "name", "change"),
    [
        ("l2_samples", "days", lambda v: v[:-1]),
        ("l2_samples", "goals", lambda v: v[:, :3]),
        ("l2_samples", "world_index", lambda v: v + 9),
        ("l2_samples", "values", lambda v: np.array(["x"] * len(v))),
        ("l2_samples", "schema", lambda v: np.zeros(3)),
        ("l3_samples", "ops", lambda v: v[:0]),
        ("l3_samples", "day_rows", lambda v: v + 10**6),
        ("l3_samples", "negotiation_index", lambda v: v - 1),
        ("l3_histories", "offsets", lambda v: v[::-1]),
        ("l3_histories", "offsets", lambda v: v + 1),
        ("l3_histories", "histories", lambda v: v[:-1]),
        ("l4_samples", "offsets", lambda v: v[:-1]),
        ("l4_samples", "thread_index", lambda v: v + 10**6),
        ("l4_samples", "teacher_weights", None),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, file: str, name: str, change: Callable[[Any], Any] | None) -> None:
    samples = labelled_samples()
    save_samples(MacroSamples.view(samples), MicroSamples.view(samples), tmp_path)
    save_l4_samples(L4Samples.view(samples), tmp_path)
    with np.load(tmp_path / f"{file}.npz") as stored:
        columns = dict(stored)
    assert name in columns
    columns = {**columns, name: change(columns[name])} if change else {k: v for k, v in columns.items() if k != name}
    np.savez(tmp_path / f"{file}.npz", **columns)
    with pytest.raises(UserError):
        load_l4_samples(tmp_path) if file == "l4_samples" else load_samples(tmp_path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"nonsense" * 20])
def test_files_that_are_none_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "l2_samples.npz").write_bytes(content)
    with pytest.raises(UserError, match="not a file of samples"):
        load_samples(tmp_path)
