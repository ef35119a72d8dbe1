"""Ways to damage a file: wrong in its bytes, or well formed and wrong in what it says."""

from __future__ import annotations

import gzip
import io
import json
import random
import zipfile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

WORDS = (
    "", "nan", "-1", "0", "1", "0.5", "1e999", "9" * 30, "9" * 5000, str(2**63), "true", "None", "a" * 300, "\x00",
    "\x1b[31mred", "\ud800", "😀", "..", "/dev/null", "%s", "{}", "a,b", ":", "1:2:3", "1-2", "2..1", "a=b=c", "--",
    "cuda:99", "all", "best", "NS+2NH", "3NS", "WAIT(-1)", "msh_tiny", "fish/a", "ne:slow:3", "P6", "quick", "x",
)  # fmt: skip
"""What people, scripts and enemies write where a value should stand."""
NUMBERS = (None, True, 0, -1, 1, 2, 2**31, 2**63, 10**40, 0.5, 1e308, float("nan"), float("inf"), -0.0)


def damaged(name: str, data: bytes, rng: random.Random) -> bytes:
    """A file with one fault, sometimes a few."""
    kinds = {"json": _json, "jsonl": _lines, "parquet": _parquet, "npy": _npy, "npz": _npz, "pt": _weights, "gz": _gz}
    kind = kinds.get(name.rpartition(".")[2])
    try:
        return _bytes(data, rng) if kind is None or rng.random() < 0.3 else kind(data, rng)
    except Exception:  # it was damaged before, so that it is no longer what its name says
        return _bytes(data, rng)


def _bytes(data: bytes, rng: random.Random) -> bytes:
    """Bits flipped, cut short, bytes lost, doubled or put in; archives and tables keep their index at the end."""
    if not data:
        return rng.randbytes(9)
    at = max(0, len(data) - rng.randint(1, 400)) if rng.random() < 0.3 else rng.randrange(len(data))
    flipped = bytes([data[at] ^ 1 << rng.randrange(8)])
    return rng.choice((
        data[:at] + flipped + data[at + 1 :], data[:at] + flipped + data[at + 1 :], data[:at],
        data[:at] + rng.randbytes(rng.randint(1, 9)) + data[at:], data[:at] + data[at + rng.randint(1, 9) :],
        data[:at] + rng.choice((b"\xff" * 4, b"\x00" * 8, b"9" * 5000, b"[" * 9000)) + data[at + 4 :], b"", data + data,
    ))  # fmt: skip


def changed(value: Any, rng: random.Random) -> Any:
    """The same tree of values with one value, key, length, shape or number type changed."""
    if isinstance(value, dict) and value and rng.random() < 0.95:
        key = rng.choice(list(value))
        fate = rng.random()
        if fate < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return {(rng.choice(WORDS) if k == key and fate < 0.15 else k): changed(v, rng) if k == key else v
                for k, v in value.items()}  # fmt: skip
    if isinstance(value, list | tuple) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        new = [changed(v, rng) if i == at else v for i, v in enumerate(value)]
        return rng.choice((new, new, new[:at], new + new[at:]))
    if isinstance(value, torch.Tensor) and rng.random() < 0.85:
        return _changed_tensor(value, rng)
    if isinstance(value, np.ndarray):
        return _changed_array(value, rng)
    return rng.choice((*WORDS, *NUMBERS, *NUMBERS, [], {}, [value], {"a": value}, [10**6] * 3))


def _changed_tensor(value: torch.Tensor, rng: random.Random) -> torch.Tensor:
    full = torch.full((max(1, value.numel()),), float("nan")).reshape(value.shape or (1,))
    return rng.choice((
        lambda: value.flatten(), lambda: value[None], lambda: value[..., :0], lambda: value.double(), lambda: full,
        lambda: value.to(torch.int8), lambda: value.bool(), lambda: value.to(torch.complex64), lambda: value.to("meta"),
        lambda: torch.zeros(1).expand(1 << 40), lambda: torch.zeros(0), lambda: torch.zeros(()),
        lambda: value.float().reshape(-1).to_sparse(), lambda: torch.nn.Parameter(value.float()), lambda: value.t(),
    ))()  # fmt: skip


def _changed_array(value: np.ndarray, rng: random.Random) -> np.ndarray:
    if value.size and rng.random() < 0.4:
        value = value.copy()
        with np.errstate(all="ignore"):
            value.reshape(-1)[rng.randrange(value.size)] = rng.choice((-1, 0, 1, 100, 127))
        return value
    kinds = (np.float64, np.int8, np.uint64, np.complex64, np.str_, bool)
    return rng.choice((
        lambda: value[: rng.randrange(len(value) + 1)], lambda: np.concatenate([value, value]), lambda: value[:0],
        lambda: value.astype(rng.choice(kinds)), lambda: value[..., None], lambda: value.reshape(-1),
        lambda: np.full_like(value, rng.choice((np.nan, np.inf, 1e30)) if value.dtype.kind == "f" else 77),
        lambda: np.array(rng.choice(WORDS).encode("utf-8", "replace").decode()), lambda: value.T,
    ))()  # fmt: skip


# --- formats ----------------------------------------------------------------------------------------------------------


def _json(data: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.1:
        return rng.choice((b"[" * 100_000, b'{"a":' * 9000 + b"1" + b"}" * 9000, b"3", b"null", b"[]", b"{}"))
    return json.dumps(changed(json.loads(data), rng)).encode("utf-8", "surrogatepass")


def _lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.splitlines()
    at = rng.randrange(len(lines))
    lines[at : at + rng.randint(0, 1)] = [_json(lines[at], rng)]
    return b"\n".join(lines) + b"\n"


def _gz(data: bytes, rng: random.Random) -> bytes:
    return gzip.compress(_lines(gzip.decompress(data), rng), 1)


def _weights(data: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.15:
        return _rewritten(data, rng)
    out = io.BytesIO()
    torch.save(changed(torch.load(io.BytesIO(data), weights_only=True), rng), out)
    return out.getvalue()


def _npy(data: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.2:  # a header that lies
        big = rng.choice((b"(100000000000,)", b"(-1, 4)", b"()", b"(4611686018427387904, 8)", b"('a',)"))
        start = data.index(b"'shape': ") + 9
        end = data.index(b")", start) + 1
        return data[:start] + big.ljust(end - start)[: max(len(big), end - start)] + data[end:]
    out = io.BytesIO()
    np.save(out, _changed_array(np.load(io.BytesIO(data)), rng))
    return out.getvalue()


def _npz(data: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.3:
        return _rewritten(data, rng)
    with np.load(io.BytesIO(data)) as file:
        arrays = dict(file)
    texts = [name for name, values in arrays.items() if values.shape == () and values.dtype.kind == "U"]
    if texts and rng.random() < 0.3:  # JSON within
        name = rng.choice(texts)
        arrays[name] = np.array(_json(str(arrays[name]).encode(), rng).decode("utf-8", "replace"))
    else:
        arrays = changed(arrays, rng)
    out = io.BytesIO()
    np.savez_compressed(out, **{str(k): np.asarray(v) for k, v in arrays.items() if np.asarray(v).dtype != object})
    return out.getvalue()


def _rewritten(data: bytes, rng: random.Random) -> bytes:
    """The archive with one entry renamed, grown, cut, damaged or lost, or with all packed."""
    source, target, kind = zipfile.ZipFile(io.BytesIO(data)), io.BytesIO(), rng.randrange(7)
    chosen = rng.choice(source.namelist())
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED if kind == 0 else zipfile.ZIP_STORED) as out:
        for entry in source.infolist():
            name, content = entry.filename, source.read(entry)
            if name == chosen:
                name = rng.choice(("../../x", "/abs", name + "/", "", "a" * 300)) if kind == 1 else name
                content = {2: content + bytes(10**5), 3: content[: len(content) // 2]}.get(kind, content)
                content = _npy(content, rng) if kind == 4 and name.endswith(".npy") else content
            if name != chosen or kind != 5:
                out.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED if kind == 6 else None)
    return target.getvalue()


def _parquet(data: bytes, rng: random.Random) -> bytes:
    """A table with a column lost, renamed, retyped, or with other values, lengths or words about itself."""
    table = pq.read_table(io.BytesIO(data))
    name = rng.choice(table.column_names)
    at, way = table.column_names.index(name), rng.randrange(7)
    if way == 0:
        table = table.drop_columns([name])
    elif way == 1:
        table = table.rename_columns(["x" if n == name else n for n in table.column_names])
    elif way == 2:
        kind = rng.choice((pa.string(), pa.float64(), pa.int8(), pa.bool_(), pa.list_(pa.int64()), pa.binary()))
        table = table.set_column(at, name, pa.nulls(table.num_rows, kind))
    elif way == 3:
        table = rng.choice((table.slice(0, rng.randrange(table.num_rows + 1)), pa.concat_tables([table, table])))
    elif way == 4 and table.schema.metadata:
        about = dict(table.schema.metadata)
        key = rng.choice(list(about))
        table = table.replace_schema_metadata({**about, key: _json(about[key], rng)})
    else:
        table = table.set_column(at, name, _other_values(table[name], rng))
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def _other_values(column: Any, rng: random.Random) -> Any:
    values = column.to_pylist()
    for _ in range(rng.choice((1, 1, 5))):
        where = rng.randrange(len(values))
        values[where] = changed(values[where], rng)
    for kind in (column.type, None):
        try:
            return pa.array(values, kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            continue
    return pa.nulls(len(values), column.type)
