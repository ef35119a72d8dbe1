"""Samples as the guide hands them around: sequences of small records (`npz` keeps them in files).

A list is a view of columns: record i is made when it is asked for, so a million samples take no million objects.
Trainers that want arrays take `columns`, or the `Samples` a list came from. Ragged columns are flat values and
offsets; texts (worlds, files, negotiations) are stored once and referred to by number; nothing is pickled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from marlab.lab.errors import UserError
from marlab.market.logs.worldlog import REJECT
from marlab.market.samples.dataset import HISTORY, Columns, Samples
from marlab.market.samples.extract import global_features
from marlab.market.samples.options import SampleOptions
from marlab.market.samples.origin import UNKNOWN, Origin, joined

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class MacroSample:
    """One morning for L2."""

    day: int
    state_static: Floats  # [12]
    state_temporal: Floats  # [H+1, 10]
    x_role: Floats  # [2] can buy, can sell
    goal: Floats  # [16] v2 label
    value: float = float("nan")  # what the day earned
    world_id: str = ""
    file_id: str = ""
    extra: Floats | None = None  # [n] further features, with the option features.extra
    origin: Origin = UNKNOWN


@dataclass(frozen=True, eq=False)
class MicroSample:
    """One decision in one negotiation for L3."""

    negotiation_id: str
    history: Floats  # [T <= 20, 4] quantity, price, delta, mine; before the decision
    baseline: Floats  # [3] quantity, price, delta
    residual: Floats  # [2] expert minus baseline; 0 unless the expert made an offer
    goal: Floats  # [16] of the day
    time_label: int
    time_mask: Floats  # [H+1] 0 or -inf
    role: int = 0  # 0 buyer, 1 seller
    x_role: Floats | None = None  # [2] one-hot of role
    reward: float = float("nan")  # what the day earned
    op: int = REJECT
    aux: Floats | None = None  # [7]
    day: int = -1
    world_id: str = ""
    time_valid: bool = True
    file_id: str = ""
    acceptable: bool | None = None  # L1 allows to accept the offer on the table; None: there is one
    partner: Floats | None = None  # [n] statistics of the partner, with the option features.extra
    day_row: int = -1  # of its day among the days of the origin
    origin: Origin = UNKNOWN


@dataclass(frozen=True, eq=False)
class L4DistillSample:
    """All negotiations that were decided together, for L4."""

    day: int
    global_feat: Floats  # [30]
    thread_feats: Floats  # [K, 24]
    thread_times: NDArray[np.integer]  # [K]
    thread_roles: NDArray[np.integer]  # [K]
    teacher_weights: Floats  # [K], sum 1
    thread_ids: list[str]
    world_id: str = ""
    file_id: str = ""
    origin: Origin = UNKNOWN


T = TypeVar("T")


class SampleList(Sequence[T], Generic[T]):
    """Records over columns; see the subclasses for which fields are which columns."""

    record: ClassVar[type]
    plain: ClassVar[dict[str, str]]  # field -> column
    texts: ClassVar[dict[str, str]]  # field -> stem of NAME_names and NAME_index
    ragged: ClassVar[dict[str, str]] = {}  # field -> column of flat values, rows offsets[i] .. offsets[i + 1]
    ragged_texts: ClassVar[dict[str, str]] = {}

    def __init__(self, columns: Columns, samples: Samples | None = None, origin: Origin = UNKNOWN) -> None:
        self.columns, self.samples, self.origin = columns, samples, origin

    def __len__(self) -> int:
        return len(self.columns[next(iter(self.plain.values()))])

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> list[T]: ...
    def __getitem__(self, at: int | slice) -> T | list[T]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        i = range(len(self))[at]  # counts from the end for negative numbers, raises beyond it
        c = self.columns
        values: dict[str, Any] = {field: c[name][i] for field, name in self.plain.items()}
        values = {field: v.item() if np.ndim(v) == 0 else v for field, v in values.items()}
        values |= {field: str(c[f"{stem}_names"][c[f"{stem}_index"][i]]) for field, stem in self.texts.items()}
        if self.ragged:
            rows = slice(c["offsets"][i], c["offsets"][i + 1])
            values |= {field: c[name][rows] for field, name in self.ragged.items()}
            for field, stem in self.ragged_texts.items():
                values[field] = c[f"{stem}_names"][c[f"{stem}_index"][rows]].tolist()
        return self.record(**values, origin=self.origin)

    @classmethod
    def of(cls, items: Sequence[T]) -> SampleList[T]:
        """The list itself, or a list of records made elsewhere as columns."""
        if isinstance(items, SampleList):
            return items
        if not items:
            raise UserError(f"There are no {cls.record.__name__}s to store.")
        columns: Columns = {}
        for field, name in cls.plain.items():
            columns[name] = np.stack([np.asarray(cls.value_of(item, field)) for item in items])
        for field, stem in cls.texts.items():
            columns |= _numbered(stem, [getattr(item, field) for item in items])
        for field, name in cls.ragged.items():
            columns[name] = np.concatenate([getattr(item, field) for item in items])
            columns["offsets"] = np.cumsum([0, *(len(getattr(item, field)) for item in items)])
        for field, stem in cls.ragged_texts.items():
            columns |= _numbered(stem, [text for item in items for text in getattr(item, field)])
        origin, starts = joined(getattr(item, "origin", UNKNOWN) for item in items)
        if "day_rows" in columns:
            begins = np.array([starts[id(getattr(item, "origin", UNKNOWN))] for item in items])
            known = (columns["day_rows"] >= 0) & (origin.days is not None)
            columns["day_rows"] = np.where(known, columns["day_rows"] + begins, -1)
        return cls(columns, origin=origin)

    @classmethod
    def value_of(cls, item: T, field: str) -> Any:
        """A field of a record that may have been left out."""
        return getattr(item, field)


def _numbered(stem: str, texts: list[str]) -> Columns:
    names, index = np.unique(np.array(texts, dtype=np.str_), return_inverse=True)
    return {f"{stem}_names": names, f"{stem}_index": index}


def _logs(samples: Samples, log: NDArray[np.integer]) -> Columns:
    """World and file of rows, by the number of their log."""
    world = _numbered("world", [info.world for info in samples.logs])
    file = _numbered("file", [f"{info.world}/{info.agent}" for info in samples.logs])
    return {name: values[log] if name.endswith("_index") else values for name, values in {**world, **file}.items()}


def _negotiations(samples: Samples) -> Columns:
    """Negotiation of each decision: a text per (log, negotiation), and its number [micro]."""
    log, number = samples.macro["log"][samples.micro["macro"]], samples.micro["negotiation"].astype(np.int64)
    span = int(number.max(initial=0)) + 1
    pairs, index = np.unique(log * span + number, return_inverse=True)
    files = [f"{info.world}/{info.agent}" for info in samples.logs]
    names = np.array([f"{files[pair // span]}/n{pair % span}" for pair in pairs.tolist()], dtype=np.str_)
    return {"negotiation_names": names, "negotiation_index": index}


class MacroSamples(SampleList[MacroSample]):
    """Days for L2."""

    record = MacroSample
    plain: ClassVar = {
        "day": "days", "state_static": "state_static", "state_temporal": "state_temporal", "x_role": "x_roles",
        "goal": "goals", "value": "values", "extra": "extras",
    }  # fmt: skip
    texts: ClassVar = {"world_id": "world", "file_id": "file"}

    @classmethod
    def view(cls, samples: Samples, options: SampleOptions | None = None) -> MacroSamples:
        """The days of tables of samples; their goals are the v2 labels."""
        macro = samples.macro
        columns = {
            "days": macro["day"], "state_static": macro["x_static"], "state_temporal": macro["x_temporal"],
            "x_roles": macro["x_role"], "goals": macro["label"], "values": macro["reward"], "extras": macro["extra"],
        }  # fmt: skip
        return cls({**columns, **_logs(samples, macro["log"])}, samples, Origin(options))

    @classmethod
    def value_of(cls, item: MacroSample, field: str) -> Any:
        """What a record that was made by hand may leave out."""
        return np.zeros(0, np.float32) if field == "extra" and item.extra is None else getattr(item, field)


class MicroSamples(SampleList[MicroSample]):
    """Decisions for L3."""

    record = MicroSample
    plain: ClassVar = {
        "baseline": "baselines", "residual": "residuals", "goal": "goals", "time_label": "time_labels",
        "time_mask": "time_masks", "role": "roles", "x_role": "x_roles", "reward": "rewards", "op": "ops",
        "aux": "aux", "day": "days", "time_valid": "time_valid", "partner": "partners",
        "acceptable": "acceptable", "day_row": "day_rows",
    }  # fmt: skip
    texts: ClassVar = {"negotiation_id": "negotiation", "world_id": "world", "file_id": "file"}
    ragged: ClassVar = {"history": "histories"}

    @classmethod
    def view(cls, samples: Samples, options: SampleOptions | None = None) -> MicroSamples:
        """The decisions of tables of samples."""
        micro, macro = samples.micro, samples.macro
        day = micro["macro"]
        histories, there = samples.histories(np.arange(samples.rows("micro")))
        columns = {
            "baselines": micro["baseline"], "residuals": micro["residual"], "goals": macro["goal"][day],
            "time_labels": micro["time_label"],
            "time_masks": np.where(micro["time_open"], np.float32(0), np.float32(-np.inf)),
            "roles": micro["role"], "x_roles": np.eye(2, dtype=np.float32)[micro["role"]],
            "rewards": macro["reward"][day], "ops": micro["op"], "aux": micro["aux"], "days": macro["day"][day],
            "time_valid": micro["time_valid"], "partners": micro["partner"], "day_rows": micro["macro"],
            "acceptable": micro["acceptable"],
            "histories": histories[there],
            "offsets": np.concatenate([[0], np.cumsum(np.minimum(micro["history_length"], HISTORY), dtype=np.int64)]),
        }  # fmt: skip
        columns |= {**_logs(samples, macro["log"][day]), **_negotiations(samples)}
        return cls(columns, samples, Origin.of(macro, options))

    @classmethod
    def value_of(cls, item: MicroSample, field: str) -> Any:
        """What a record that was made by hand may leave to its other fields."""
        if field == "x_role" and item.x_role is None:
            return np.eye(2, dtype=np.float32)[item.role]
        if field == "aux" and item.aux is None:
            return np.zeros(7, np.float32)
        if field == "acceptable" and item.acceptable is None:
            return item.aux is not None and bool(item.aux[5] > 0)
        if field == "partner" and item.partner is None:
            return np.zeros(0, np.float32)
        return getattr(item, field)


class L4Samples(SampleList[L4DistillSample]):
    """Joint decisions for L4."""

    record = L4DistillSample
    plain: ClassVar = {"day": "days", "global_feat": "global_feats"}
    texts: ClassVar = {"world_id": "world", "file_id": "file"}
    ragged: ClassVar = {
        "thread_feats": "thread_feats",
        "thread_times": "thread_times",
        "thread_roles": "thread_roles",
        "teacher_weights": "teacher_weights",
    }
    ragged_texts: ClassVar = {"thread_ids": "thread"}

    @classmethod
    def view(cls, samples: Samples, options: SampleOptions | None = None) -> L4Samples:
        """The calls of tables of samples."""
        micro, calls = samples.micro, samples.calls
        threads = {name.replace("negotiation", "thread"): v for name, v in _negotiations(samples).items()}
        columns = {
            "days": samples.macro["day"][calls["macro"]],
            "global_feats": global_features(samples),
            "thread_feats": micro["thread"],
            "thread_times": micro["thread_day"],
            "thread_roles": micro["role"],
            "teacher_weights": micro["alpha"],
            "offsets": np.concatenate([[0], np.cumsum(calls["threads"], dtype=np.int64)]),
        }
        columns |= {**threads, **_logs(samples, samples.macro["log"][calls["macro"]])}
        return cls(columns, samples, Origin(options))
