"""Reading archives and tables from strangers: no size is believed, and whatever is wrong is one sentence."""

from __future__ import annotations

import io
import os
import re
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.lib import format as npy

import marlab
from marlab.lab.errors import UserError
from marlab.lab.runs.arrays import map_npy, read_npz, read_parquet

ARRAYS = {
    "plain": np.arange(12, dtype=np.float32).reshape(3, 4), "turned": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "text": np.array("words"), "names": np.array(["a", "bcd"]), "none": np.zeros((0, 5), np.int8),
    "half": np.array([1.5, np.nan], np.float16), "flags": np.array([True, False]),
}  # fmt: skip


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_what_numpy_wrote_is_read(save: Callable[..., None], tmp_path: Path) -> None:
    save(tmp_path / "a.npz", **ARRAYS)
    read = read_npz(tmp_path / "a.npz", "arrays")
    assert list(read) == list(ARRAYS)
    for name, values in ARRAYS.items():
        np.testing.assert_array_equal(read[name], values)
        assert read[name].dtype == values.dtype and read[name].flags.writeable


def archive(path: Path, entries: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in entries.items():
            file.writestr(name, content)
    return path


def entry(shape: tuple[int, ...], kind: str = "<f8", data: bytes = b"") -> bytes:
    """An array in the npy format whose header says what it likes."""
    head = io.BytesIO()
    npy.write_array_header_1_0(head, {"descr": kind, "fortran_order": False, "shape": shape})
    return head.getvalue() + data


LIES = {
    "too long": entry((10**11,)), "beyond all counters": entry((2**62, 2**62)), "too short": entry((1,), "<f8", b"12"),
    "negative": entry((-1,)), "objects": entry((1,), "|O", b"\x80\x04N."), "records": entry((1,), "|V8", bytes(8)),
    "no header": b"\x93NUMPY\x01\x00", "another version": b"\x93NUMPY\x09\x00" + bytes(200), "empty": b"",
    "code": b"\x93NUMPY\x01\x00" + struct.pack("<H", 30) + b"{'descr': __import__('os')}   \n",
    "deep": b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"(" * 9000,
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_a_header_that_lies_is_refused(lie: str, tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", {"x.npy": LIES[lie]})
    tracemalloc.start()
    with pytest.raises(UserError, match=r"a.npz is damaged or not a test: .*\.$") as error:
        read_npz(path, "a test")
    assert tracemalloc.get_traced_memory()[1] < 1 << 23 and "\n" not in str(error.value)
    tracemalloc.stop()


def test_an_archive_that_unpacks_without_end_is_refused(tmp_path: Path) -> None:
    size = 1 << 24
    path = archive(tmp_path / "a.npz", {"x.npy": entry((size,), "|i1", bytes(size))})
    assert path.stat().st_size < size // 500
    with pytest.raises(UserError, match="unpacks to more than 1 MiB"):
        read_npz(path, "a test", limit=1 << 20)
    assert read_npz(path, "a test")["x"].shape == (size,)


def test_one_flipped_bit_or_a_missing_end_is_refused(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", x=np.random.default_rng(0).random(50))
    whole = (tmp_path / "a.npz").read_bytes()
    for at in range(0, len(whole), 7):
        for data in (whole[:at], whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :]):
            (tmp_path / "b.npz").write_bytes(data)
            try:
                (values,) = read_npz(tmp_path / "b.npz", "a test").values()
            except UserError:
                continue
            np.testing.assert_array_equal(values, np.random.default_rng(0).random(50))  # a date or the like


def test_other_entries_are_refused(tmp_path: Path) -> None:
    for number, (name, method) in enumerate((("x.txt", 0), ("x.npy", zipfile.ZIP_LZMA), ("a/", 0))):
        with pytest.raises(UserError, match="entry"):
            read_npz(archive(tmp_path / f"{number}.npz", {name: entry((0,))}, method), "a test")
    with pytest.raises(UserError, match=r"does not exist, expected a test\."):
        read_npz(tmp_path / "missing.npz", "a test")
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(UserError, match=r"cannot be read: Not a regular file\."):
        read_npz(tmp_path / "pipe.npz", "a test")


def test_arrays_are_mapped_if_the_file_is_as_long_as_it_says(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", ARRAYS["plain"])
    np.testing.assert_array_equal(map_npy(tmp_path / "a.npy"), ARRAYS["plain"])
    np.save(tmp_path / "n.npy", ARRAYS["none"])
    assert map_npy(tmp_path / "n.npy").shape == (0, 5)
    for content in LIES.values():
        (tmp_path / "b.npy").write_bytes(content)
        with pytest.raises((ValueError, OSError)):
            map_npy(tmp_path / "b.npy")


def test_tables_that_say_more_than_they_can_hold_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), path)
    assert read_parquet(path).to_pydict() == {"a": [1, 2], "b": ["x", "y"]}
    assert read_parquet(path, ["b", "c"]).column_names == ["b"]
    pq.write_table(pa.table({"a": pa.array(np.zeros(5_000_000))}), path)  # equal values are stored once
    with pytest.raises(ValueError, match="more rows than it can"):
        read_parquet(path, limit=1 << 20)
    path.write_bytes(path.read_bytes()[:-9] + b"\xff\xff\xff\x7fPAR1")
    with pytest.raises((ValueError, OSError)):
        read_parquet(path)


def test_nobody_else_reads_archives_and_tables() -> None:
    """One reader for the whole package: what it refuses is refused everywhere."""
    reads = re.compile(r"\b(np|numpy)\.(load|memmap|fromfile)\(|\btorch\.load\(|\bpq\.(read_|ParquetFile)|pickle\.load")
    home = Path(marlab.__file__).parent
    readers = {
        path.relative_to(home).as_posix() for path in home.rglob("*.py") if reads.search(path.read_text("utf-8"))
    }
    own = {"lab/engine/nursery.py", "lab/engine/tasks.py"}  # answers of the program's own processes
    assert readers == {"lab/runs/arrays.py", "lab/runs/checkpoint.py"} | own


FOOTERS = """
import sys
from pathlib import Path
import pyarrow as pa, pyarrow.parquet as pq
from marlab.lab.runs.arrays import read_parquet
path = Path(sys.argv[1])
pq.write_table(pa.table({"a": [[1, 2], [], None], "b": [[1.5], [2.5], []]}), path)
whole = path.read_bytes()
for at in range(len(whole) - 8 - int.from_bytes(whole[-8:-4], "little"), len(whole) - 8):
    for bit in (1, 2, 16):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :])
        try:
            read_parquet(path)
        except ValueError:
            pass
print("all read")
"""


def test_no_damaged_end_of_a_table_ends_the_process(tmp_path: Path) -> None:
    """Arrow's own reader of what a file says of a column does, in a process that cannot catch it."""
    words = [sys.executable, "-c", FOOTERS, str(tmp_path / "t.parquet")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.stdout == "all read\n", done.stderr[-2000:]
