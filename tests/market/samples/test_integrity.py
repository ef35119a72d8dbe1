"""A damaged folder of samples is refused in one sentence when it is opened, never later."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marlab.lab.errors import UserError
from marlab.market.samples.dataset import open_dataset
from tests.market.sample_tools import write_dataset
from tests.market.samples.test_dataset import TOLD, random_samples


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    write_dataset(folder, {"train": random_samples(1)}, TOLD)
    open_dataset(folder).split("train")
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "samples"))


@pytest.mark.parametrize(
    ("column", "change", "said"),
    [
        ("micro.op", lambda v: v[:-1], "micro are not equally long"),
        ("macro.x_static", lambda v: v[:0], "macro are not equally long"),
        ("micro.macro", lambda v: v + 100, r"micro\.macro holds 100"),
        ("micro.call", lambda v: v - 5, r"micro\.call holds -"),
        ("calls.first", lambda v: v + 8, r"calls\.first"),
        ("micro.history", lambda v: v + 29, r"micro\.history"),
        ("macro.log", lambda v: v[::-1] + 7, r"macro\.log holds 7"),
        ("macro.log", lambda v: np.array([1, 0, 1]), "not in order"),
        ("micro.op", lambda v: v + 9, r"micro\.op holds 9"),
        ("micro.role", lambda v: v - 1, r"micro\.role holds -1"),
        ("micro.time_label", lambda v: v + 5, r"micro\.time_label"),
        ("micro.thread_day", lambda v: v - 2, r"micro\.thread_day"),
        ("offers.row", lambda v: v + np.float32(np.nan), r"offers\.row"),
        ("micro.op", lambda v: v.astype("float32"), "holds float32"),
    ],
)
def test_damaged_columns(folder: Path, column: str, change: Callable[[Any], Any], said: str) -> None:
    path = folder / "train" / f"{column}.npy"
    np.save(path, change(np.load(path)))
    with pytest.raises(UserError, match=said):
        open_dataset(folder).split("train")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sizes": None}, "lacks sizes"),
        ({"sizes": {"horizon": 10**9}}, "not those of its options"),
        ({"options": {}}, "does not say which L1 rules"),
        ({"options": {**TOLD, "l1": 5}}, "does not say which L1 rules"),
        ({"options": {**TOLD, "l1": {"rules": "none"}}}, "rules"),
        ({"options": {**TOLD, "features": {"horizon": "x"}}}, "horizon"),
        ({"splits": {}}, "has splits"),
        ({"splits": {"../train": 1}}, "has splits"),
        ({"splits": ["train"]}, "lacks sizes, options or splits"),
    ],
)
def test_damaged_descriptions(folder: Path, change: dict[str, Any], said: str) -> None:
    about = json.loads((folder / "dataset.json").read_text())
    (folder / "dataset.json").write_text(json.dumps({**about, **change}))
    with pytest.raises(UserError, match=said):
        open_dataset(folder)


@pytest.mark.parametrize("content", ["[]", "5", "{", "[" * 100_000, '{"schema": 1' + "0" * 5000 + "}"])
def test_descriptions_that_are_none(folder: Path, content: str) -> None:
    (folder / "dataset.json").write_text(content)
    with pytest.raises(UserError):
        open_dataset(folder)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"x" * 100])
def test_a_damaged_list_of_logs(folder: Path, content: bytes) -> None:
    (folder / "logs.parquet").write_bytes(content)
    with pytest.raises(UserError, match=r"logs\.parquet cannot be read"):
        open_dataset(folder).split("train")
