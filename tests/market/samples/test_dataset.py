"""Tables of samples: shifting of row numbers, lossless storage, refusal of damaged folders."""

import json

import numpy as np
import pytest

from marlab.lab.config import to_dict
from marlab.lab.errors import UserError
from marlab.market.rules.features import FeatureOptions
from marlab.market.samples import dataset as ds
from marlab.market.samples.dataset import LogInfo, Samples, open_dataset, schema
from marlab.market.samples.options import SampleOptions
from tests.market.sample_tools import write_dataset

OPTIONS = SampleOptions(features=FeatureOptions(horizon=4, extra=True))
TOLD = to_dict(OPTIONS)
SIZES = OPTIONS.sizes


def random_samples(seed: int, days: int = 3, calls: int = 4, threads: int = 2, offers: int = 30) -> Samples:
    """Random values in every column; row numbers point at existing rows."""
    rng = np.random.default_rng(seed)
    rows = {"logs": 2, "macro": days, "calls": calls, "micro": calls * threads, "offers": offers}
    tables: dict[str, dict[str, np.ndarray]] = {}
    for table, columns in schema(SIZES).items():
        tables[table] = {}
        for name, column in columns.items():
            top = rows[column.refers] if column.refers else 2
            values = rng.integers(0, top, (rows[table], *column.cell))
            if column.kind == "float32":
                values = rng.normal(size=values.shape)
            tables[table][name] = values.astype(column.kind)
    tables["micro"]["history_length"] = rng.integers(0, offers // 2, rows["micro"]).astype("int16")
    tables["micro"]["history"] = rng.integers(0, offers // 2, rows["micro"])
    tables["macro"]["log"].sort()
    tables["offers"]["row"][:, 2] = rng.integers(0, SIZES.horizon + 1, offers)
    logs = [LogInfo(f"w{seed}", f"a{i}", "PenguinAgent", "x.PenguinAgent", "file") for i in range(2)]
    return Samples(SIZES, logs, tables)


def assert_equal(a: Samples, b: Samples) -> None:
    assert a.sizes == b.sizes and list(a.logs) == list(b.logs)
    for table, columns in schema(a.sizes).items():
        for name in columns:
            x, y = a.tables[table][name], b.tables[table][name]
            assert x.dtype == y.dtype, (table, name)
            np.testing.assert_array_equal(x, y, f"{table}.{name}")


def test_concatenation_keeps_what_rows_refer_to():
    parts = [random_samples(i) for i in range(3)]
    whole = ds.concatenate(parts)
    before = [sum(part.rows("micro") for part in parts[:i]) for i in range(3)]
    for part, start in zip(parts, before):
        for row in range(part.rows("micro")):
            day = whole.micro["macro"][start + row]
            np.testing.assert_array_equal(
                whole.macro["x_static"][day], part.macro["x_static"][part.micro["macro"][row]]
            )
            assert whole.logs[whole.macro["log"][day]] == part.logs[part.macro["log"][part.micro["macro"][row]]]
        everything = np.arange(part.rows("micro"))
        np.testing.assert_array_equal(whole.histories(everything + start)[0], part.histories(everything)[0])
    first = whole.calls["first"][parts[0].rows("calls") :][: parts[1].rows("calls")]
    np.testing.assert_array_equal(first - before[1], parts[1].calls["first"])


def test_histories_end_with_the_latest_offer_and_are_padded_on_the_left():
    samples = random_samples(0, offers=60)
    samples.micro["history"][:3] = [5, 5, 7]
    samples.micro["history_length"][:3] = [0, 3, 25]
    found, there = samples.histories(np.arange(3))
    offers = samples.tables["offers"]["row"]
    assert there.sum(1).tolist() == [0, 3, 20]
    np.testing.assert_array_equal(found[1], np.concatenate([np.zeros((17, 4), np.float32), offers[5:8]]))
    np.testing.assert_array_equal(found[2], offers[12:32])


def test_a_dataset_is_stored_without_loss_and_opens_as_mapped_arrays(tmp_path):
    parts = [random_samples(i) for i in range(3)]
    writer = ds.SplitWriter(tmp_path / "train", SIZES)
    for part in parts:
        writer.append(part)
    val = ds.SplitWriter(tmp_path / "val", SIZES)
    val.append(parts[0])
    ds.finish(tmp_path, {"train": writer, "val": val}, {**TOLD, "expert": "PenguinAgent"})
    opened = open_dataset(tmp_path)
    assert opened.options == {**TOLD, "expert": "PenguinAgent"} and opened.splits == ("train", "val")
    assert_equal(opened.split("train"), ds.concatenate(parts))
    assert_equal(opened.split("val"), parts[0])
    assert isinstance(opened.split("train").macro["x_temporal"], np.memmap)


def test_a_run_directory_opens_by_its_data_folder_and_an_empty_split_is_readable(tmp_path):
    write_dataset(tmp_path / "data", {"train": random_samples(1), "test": ds.empty(SIZES)}, TOLD)
    assert open_dataset(tmp_path).split("test").rows("micro") == 0
    with pytest.raises(UserError, match="has no split 'val', only train, test"):
        open_dataset(tmp_path).split("val")


def test_parts_come_back_as_they_were(tmp_path):
    parts = [random_samples(1), random_samples(2)]
    ds.save_part(tmp_path / "p.npz", parts)
    assert_equal(ds.load_part(tmp_path / "p.npz"), ds.concatenate(parts))


def test_unfinished_newer_and_damaged_folders_are_refused(tmp_path):
    with pytest.raises(UserError, match="not a finished set of samples"):
        open_dataset(tmp_path)
    write_dataset(tmp_path, {"train": random_samples(1)}, TOLD)
    (tmp_path / "train" / "micro.op.npy").write_bytes(b"nonsense")
    with pytest.raises(UserError, match=r"damaged, .*micro\.op\.npy"):
        open_dataset(tmp_path).split("train")
    np.save(tmp_path / "train" / "micro.op.npy", np.zeros((8, 2)))
    with pytest.raises(UserError, match=r"holds float64 \(8, 2\)"):
        open_dataset(tmp_path).split("train")
    about = json.loads((tmp_path / "dataset.json").read_text())
    (tmp_path / "dataset.json").write_text(json.dumps({**about, "schema": 99}))
    with pytest.raises(UserError, match="has schema 99; this version reads schema 2"):
        open_dataset(tmp_path)


def test_an_object_array_is_never_unpickled(tmp_path):
    write_dataset(tmp_path, {"train": random_samples(1)}, TOLD)
    np.save(tmp_path / "train" / "micro.op.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(UserError, match="damaged"):
        open_dataset(tmp_path).split("train")


def test_a_column_of_the_wrong_type_is_a_programming_error(tmp_path):
    samples = random_samples(1)
    samples.micro["op"] = samples.micro["op"].astype("int64")
    with pytest.raises(ValueError, match=r"micro\.op\.npy takes"):
        ds.SplitWriter(tmp_path, SIZES).append(samples)
