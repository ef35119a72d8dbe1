"""Reading arrays and tables that anybody may have made: nothing is unpickled, and no size is believed.

A header can ask for any amount of memory, and a packed archive can unpack to a thousand times its size. So what a file
says of itself is compared with what it holds before anything is allocated, and whatever is wrong is one sentence.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from marlab.lab.errors import UserError
from marlab.lab.runs.files import first_line, open_regular

if TYPE_CHECKING:
    import pyarrow as pa

MOST = 1 << 28
"""Bytes that a packed file may unpack to; one that is itself larger is held to its own size."""
PLAIN = "biufcSU"
"""Kinds of elements of an array: numbers and texts."""
PACKED = 1032
"""Times that the compression of archives can shorten anything, at most."""
REPEATED = 100
"""Values per byte that a table may hold: equal values next to each other are stored once."""


def read_npz(path: Path, what: str, limit: int = MOST) -> dict[str, NDArray[Any]]:
    """All arrays of an `.npz` file; a file that is not `what`, such as "a file of market configs", is a UserError."""
    try:
        with open_regular(path) as file:
            return _unpack(file, limit)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist, expected {what}.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or first_line(error)}.") from None
    except ValueError as error:
        raise UserError(f"{path} is damaged or not {what}: {first_line(error)}.") from None


def _unpack(file: BinaryIO, limit: int) -> dict[str, NDArray[Any]]:
    """The arrays of an open archive; ValueError says what is wrong with it."""
    size = file.seek(0, 2)
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            if sum(entry.file_size for entry in entries) > max(size, limit):
                raise ValueError(f"it unpacks to more than {max(size, limit) >> 20} MiB")
            arrays = {entry.filename.removesuffix(".npy"): _array(archive, entry, size) for entry in entries}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OverflowError) as error:
        raise ValueError(first_line(error)) from None
    if len(arrays) < len(entries):
        raise ValueError("it holds two arrays of one name")
    return arrays


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, size: int) -> NDArray[Any]:
    """One entry, read if its header, the index of the archive and the file agree on its size."""
    name = entry.filename
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or not name.endswith(".npy"):
        raise ValueError(f"its entry {name[:60]!r} is no array")
    if not 0 < entry.file_size <= PACKED * (entry.compress_size + 1) or entry.compress_size > size:
        raise ValueError(f"the size of its entry {name[:60]!r} cannot be true")
    with archive.open(entry) as source:
        shape, fortran, kind = _header(source)
        rest = entry.file_size - source.tell()
        if math.prod(shape) * kind.itemsize != rest:
            raise ValueError(f"its entry {name[:60]!r} holds {rest} bytes, its header says {shape} of {kind}")
        data = bytearray()
        while block := source.read(1 << 20):  # to its end, where the checksum is compared
            data += block
    values = np.frombuffer(data, kind)
    return values.reshape(shape, order="F" if fortran else "C")


def _header(source: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and element type of an array in the npy format."""
    version = npy.read_magic(source)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"it is written in version {version} of the npy format")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    try:
        shape, fortran, kind = read(source)
    except Exception as error:  # it is parsed as Python, and damage can make the parser stumble anywhere
        raise ValueError(first_line(error)) from None
    if kind.kind not in PLAIN or any(length < 0 for length in shape):
        raise ValueError(f"it holds {kind}, not plain numbers or texts")
    return shape, fortran, kind


def map_npy(path: Path) -> NDArray[Any]:
    """The array of an `.npy` file, mapped from disk; ValueError or OSError where the file does not hold one."""
    with open_regular(path) as file:
        shape, fortran, kind = _header(file)
        start, size = file.tell(), file.seek(0, 2)
    if math.prod(shape) * kind.itemsize != size - start:
        raise ValueError(f"it holds {size - start} bytes, its header says {shape} of {kind}")
    if size == start:
        return np.empty(shape, kind)
    return np.memmap(path, kind, "r", start, shape, "F" if fortran else "C")


def read_parquet(path: Path, columns: Sequence[str] | None = None, limit: int = MOST) -> pa.Table:
    """A Parquet file, or those of some columns that it has; ValueError where it is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open_regular(path):
        pass
    try:
        with pq.ParquetFile(path, memory_map=True) as file:
            _check_counts(file.metadata, path.stat().st_size, limit)
            known = set(file.schema_arrow.names)
            if len(known) < len(file.schema_arrow.names):
                raise ValueError("it holds two columns of one name")
            return file.read(None if columns is None else [name for name in columns if name in known])
    except (pa.ArrowException, OSError, OverflowError, RecursionError) as error:  # Arrow's own words are OSErrors
        raise ValueError(first_line(error)) from None


def _check_counts(about: Any, size: int, limit: int) -> None:
    """Compare what the end of a Parquet file says of its length with its size. Columns are not asked: a damaged one
    ends the process."""
    if about.num_rows > max(limit // 8, REPEATED * size):
        raise ValueError("it says that it holds more rows than it can")
    if any(about.row_group(i).total_byte_size > max(limit, REPEATED * size) for i in range(about.num_row_groups)):
        raise ValueError("it says that it unpacks to more than it can")
