"""Samples in the guide's files: `.npz` archives of plain arrays, checked when they are read; nothing is pickled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marlab.lab.errors import UserError
from marlab.lab.runs.arrays import read_npz
from marlab.lab.runs.files import replacing, trusting
from marlab.market.logs.daystate import HORIZON
from marlab.market.logs.worldlog import REJECT
from marlab.market.rules.goals import GOAL_SIZE
from marlab.market.samples.dataset import Columns
from marlab.market.samples.origin import Origin
from marlab.market.samples.records import (
    L4DistillSample,
    L4Samples,
    MacroSample,
    MacroSamples,
    MicroSample,
    MicroSamples,
    SampleList,
)

SCHEMA = 1


def save_columns(path: Path, columns: Columns, **more: int) -> None:
    """An `.npz` of plain arrays."""
    arrays = {**columns, **{name: np.asarray(value) for name, value in {"schema": SCHEMA, **more}.items()}}
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def load_columns(path: Path, needed: Iterable[str]) -> Columns:
    """Arrays of an `.npz`; one that is damaged, lacks a column or holds Python objects is refused."""
    columns = read_npz(path, "a file of samples, as save_samples writes it")
    schema = columns.pop("schema", np.asarray(SCHEMA))
    if schema.shape != () or schema.dtype.kind not in "iu" or int(schema) != SCHEMA:
        raise UserError(f"{path} was written by another version; this one reads schema {SCHEMA}.")
    missing = [name for name in needed if name not in columns]
    if missing:
        raise UserError(f"{path} lacks {', '.join(missing)}.")
    return columns


def with_defaults(columns: Columns, kind: type[SampleList[Any]], slots: int = 0) -> Columns:
    """Columns of a file by another program, completed: everything allowed, nothing known."""
    columns = dict(columns)
    rows = len(columns["goals"])
    roles = columns.get("roles", np.zeros(rows, np.int8)).astype(np.int64)
    usual: dict[str, Any] = {
        "days": np.full(rows, -1, np.int16), "values": np.full(rows, np.nan, np.float32),
        "rewards": np.full(rows, np.nan, np.float32), "ops": np.full(rows, REJECT, np.int8),
        "aux": np.zeros((rows, 7), np.float32), "time_valid": np.ones(rows, bool),
        "time_masks": np.zeros((rows, slots), np.float32), "x_roles": np.eye(2, dtype=np.float32)[roles],
        "extras": np.zeros((rows, 0), np.float32), "partners": np.zeros((rows, 0), np.float32),
        "day_rows": np.full(rows, -1),
        "acceptable": columns["aux"][:, 5] > 0 if "aux" in columns else np.zeros(rows, bool),
    }  # fmt: skip
    for name in set(kind.plain.values()) & set(usual):
        columns.setdefault(name, usual[name])
    for stem in kind.texts.values():
        columns.setdefault(f"{stem}_names", np.array([""], dtype=np.str_))
        columns.setdefault(f"{stem}_index", np.zeros(rows, np.int64))
    return columns


def check_sizes(columns: Columns, path: Path) -> None:
    """Refuse goals of another length."""
    if columns["goals"].ndim != 2 or columns["goals"].shape[1] != GOAL_SIZE:
        raise UserError(f"{path} holds goals of shape {columns['goals'].shape}, expected [samples, {GOAL_SIZE}].")


def check_rows(columns: Columns, kind: type[SampleList[Any]], path: Path) -> None:
    """Refuse columns that are not equally long, hold no numbers, or lead to texts and histories that are not there."""
    single = [*kind.plain.values(), *(f"{stem}_index" for stem in kind.texts.values())]
    rows = {len(columns[name]) if columns[name].ndim else -1 for name in single}
    if len(rows) != 1 or any(columns[name].dtype.kind not in "biuf" for name in kind.plain.values()):
        raise UserError(f"{path} is damaged: its columns are not equally long, or hold no numbers.")
    count = rows.pop()
    for stem in kind.texts.values():
        _leads(columns[f"{stem}_index"], len(columns[f"{stem}_names"]), path)
    if not kind.ragged:
        return
    offsets, flat = columns["offsets"], [columns[name] for name in kind.ragged.values()]
    whole = offsets.dtype.kind in "iu" and offsets.shape == (count + 1,) and offsets[0] == 0
    ends = {len(values) if values.ndim else -1 for values in flat}
    if not whole or (np.diff(offsets) < 0).any() or ends != {int(offsets[-1])}:
        raise UserError(f"{path} is damaged: its offsets do not divide what they should.")
    for stem in kind.ragged_texts.values():
        _leads(columns[f"{stem}_index"], len(columns[f"{stem}_names"]), path)


def _leads(index: NDArray[Any], count: int, path: Path) -> None:
    if index.dtype.kind not in "iu" or (len(index) and not 0 <= index.min() <= index.max() < count):
        raise UserError(f"{path} is damaged: it names texts that are not there.")


def save_samples(
    macro: Sequence[MacroSample], micro: Sequence[MicroSample], out_dir: str | Path, horizon: int = HORIZON
) -> None:
    """Write l2_samples.npz, l3_samples.npz and l3_histories.npz; an empty list writes no file."""
    folder = Path(out_dir)
    if len(macro):
        days = MacroSamples.of(macro)
        _check_horizon(days.columns["state_temporal"].shape[1] - 1, horizon)
        save_columns(folder / "l2_samples.npz", {**days.columns, **days.origin.packed()}, horizon=horizon)
    if len(micro):
        decisions = MicroSamples.of(micro)
        columns = dict(decisions.columns)
        _check_horizon(columns["time_masks"].shape[1] - 1, horizon)
        histories = {name: columns.pop(name) for name in ("histories", "offsets")}
        save_columns(folder / "l3_samples.npz", {**columns, **decisions.origin.packed()}, horizon=horizon)
        save_columns(folder / "l3_histories.npz", histories)


def load_samples(in_dir: str | Path) -> tuple[Sequence[MacroSample], Sequence[MicroSample]]:
    """What `save_samples` wrote; a kind that was not written is an empty list."""
    folder = Path(in_dir)
    macro: Sequence[MacroSample] = []
    micro: Sequence[MicroSample] = []
    if not (folder / "l2_samples.npz").exists() and not (folder / "l3_samples.npz").exists():
        raise UserError(f"{folder} holds neither l2_samples.npz nor l3_samples.npz; save_samples writes them.")
    if (folder / "l2_samples.npz").exists():
        path = folder / "l2_samples.npz"
        columns = load_columns(path, ("state_static", "state_temporal", "x_roles", "goals"))
        columns.pop("horizon", None)
        with trusting(f"{path} is damaged"):
            origin = Origin.unpacked(columns, str(path))
            check_sizes(columns, path)
            columns = with_defaults(columns, MacroSamples)
            check_rows(columns, MacroSamples, path)
        macro = MacroSamples(columns, origin=origin)
    if (folder / "l3_samples.npz").exists():
        path = folder / "l3_samples.npz"
        columns = load_columns(path, ("roles", "goals", "baselines", "residuals", "time_labels"))
        with trusting(f"{path} is damaged"):
            origin = Origin.unpacked(columns, str(path))
            check_sizes(columns, path)
            slots = int(columns.pop("horizon", np.asarray(HORIZON))) + 1
            histories = load_columns(folder / "l3_histories.npz", ("histories", "offsets"))
            columns = {**with_defaults(columns, MicroSamples, slots), **histories}
            check_rows(columns, MicroSamples, path)
            _check_days(columns["day_rows"], origin, path)
        micro = MicroSamples(columns, origin=origin)
    return macro, micro


def save_l4_samples(samples: Sequence[L4DistillSample], out_dir: str | Path) -> None:
    """Write l4_samples.npz."""
    rounds = L4Samples.of(samples)
    save_columns(Path(out_dir) / "l4_samples.npz", {**rounds.columns, **rounds.origin.packed()})


def load_l4_samples(in_dir: str | Path) -> L4Samples:
    """What `save_l4_samples` wrote."""
    path = Path(in_dir) / "l4_samples.npz"
    columns = load_columns(path, ("global_feats", "thread_feats", "offsets"))
    with trusting(f"{path} is damaged"):
        origin = Origin.unpacked(columns, str(path))
        check_rows(columns, L4Samples, path)
    return L4Samples(columns, origin=origin)


def _check_days(rows: NDArray[Any], origin: Origin, path: Path) -> None:
    """Decisions belong to days that are there."""
    count = 0 if origin.days is None else len(origin.days["log"])
    if len(rows) and not -1 <= rows.min() <= rows.max() < count and rows.max() >= 0:
        raise UserError(f"{path} is damaged: its decisions name days that are not there.")


def _check_horizon(of_samples: int, asked: int) -> None:
    if of_samples != asked:
        raise UserError(f"The samples look {of_samples} days ahead, horizon is {asked}; give horizon={of_samples}.")
