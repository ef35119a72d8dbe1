"""Checkpoints: complete, atomic, and safe to load from strangers.

A checkpoint is what `torch.save` makes of tensors and plain Python values. It is loaded with `weights_only=True`,
so nothing in it is executed, and every byte is checked against the archive's checksums before it is used.
"""

from __future__ import annotations

import pickle
import re
import struct
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch

from marlab.lab.errors import UserError
from marlab.lab.runs.files import first_line, read_json, replacing, trusting, write_json

FORMAT = "marlab-checkpoint"
SCHEMA = 1


class CheckpointError(UserError):
    """A checkpoint that cannot be used, with the reason in one sentence."""


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint file holds."""

    path: Path
    kind: str  # which trainer wrote it, for example "fish/ppo"
    step: int
    state: dict[str, Any]
    score: float | None = None  # how good what was saved is, where that was measured
    note: str = ""  # what somebody who goes on from it should know


@dataclass(frozen=True)
class Keep:
    """Which checkpoints stay on disk: the last `last`, the best one, and every `every`-th step."""

    last: int | None = 3  # None keeps all
    every: int | None = None

    @staticmethod
    def all() -> Keep:
        return Keep(last=None)


def save_checkpoint(path: Path, kind: str, step: int, state: dict[str, Any], score: float | None = None) -> None:
    """Write a checkpoint; if anything fails (a full disk, say) the old file is untouched."""
    data = {"format": FORMAT, "schema": SCHEMA, "kind": kind, "step": step, "state": state}
    if score is not None:
        data["score"] = float(score)
    with replacing(path) as temporary:
        torch.save(data, temporary)


def load_checkpoint(path: Path, kind: str | None = None, map_location: torch.device | str = "cpu") -> Checkpoint:
    """Read and verify a checkpoint; `kind` refuses files of other trainers."""
    if not path.is_file():
        raise CheckpointError(f"The checkpoint {path} does not exist.")
    try:
        verify_archive(path)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            data = torch.load(path, map_location=map_location, weights_only=True)
    except CheckpointError:
        raise
    except pickle.UnpicklingError:
        raise CheckpointError(
            f"The checkpoint {path} holds more than tensors and plain values, which could run code; it was not loaded."
        ) from None
    except Exception as error:  # a stranger's file can make the reader stumble anywhere; all of it means: not usable
        raise CheckpointError(f"The checkpoint {path} cannot be read: {first_line(error)}.") from None
    if not isinstance(data, dict) or str(data.get("format")) != FORMAT:
        raise CheckpointError(f"The file {path} is not a marlab checkpoint.")
    if type(data.get("schema")) is not int or data["schema"] != SCHEMA:
        raise CheckpointError(
            f"The checkpoint {path} has schema {data.get('schema')}, this version of marlab reads schema {SCHEMA}."
        )
    if kind is not None and str(data.get("kind")) != kind:
        raise CheckpointError(f"The checkpoint {path} was written by '{data.get('kind')}', expected one by '{kind}'.")
    if (
        not isinstance(data.get("step"), int)
        or not isinstance(data.get("kind"), str)
        or not isinstance(data.get("state"), dict)
        or not isinstance(data.get("score"), float | None)
    ):
        raise CheckpointError(f"The checkpoint {path} lacks its step or its state.")
    with trusting(f"The checkpoint {path} cannot be read", CheckpointError):  # it may be nested as deeply as it likes
        tensors = list(_tensors(data["state"]))
    if any(tensor.layout != torch.strided or tensor.is_quantized for tensor in tensors):
        raise CheckpointError(f"The checkpoint {path} holds a tensor that is not a plain array of numbers.")
    size = path.stat().st_size
    if any(tensor.is_meta or tensor.numel() * tensor.element_size() > size for tensor in tensors):
        raise CheckpointError(f"The checkpoint {path} holds a tensor that is larger than the file.")
    return Checkpoint(path, data["kind"], data["step"], data["state"], data.get("score"))


def verify_archive(path: Path) -> None:
    """torch writes plain archives: every entry a file, neither packed nor encrypted, with a checksum, inside the file.

    Anything else was damaged or made by somebody to harm: what is packed can unpack to any size, and an entry marked as
    a folder or told differently in its own head would be read by torch in another way than it was checked here.
    """
    size = path.stat().st_size
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as file:
            entries = archive.infolist()
            wrong = next((e.filename for e in entries if not _is_plain(e, size) or not _head_agrees(file, e)), None)
            if wrong is None and len({e.filename for e in entries}) < len(entries):
                wrong = "a name that stands twice"
            if wrong is None and sum(e.file_size for e in entries) > size:
                wrong = "sizes beyond the file"
            wrong = archive.testzip() if wrong is None else wrong
    except (zipfile.BadZipFile, EOFError, OSError, ValueError, NotImplementedError, RuntimeError, struct.error):
        raise CheckpointError(f"The checkpoint {path} is damaged, cut short, or not a checkpoint at all.") from None
    if wrong is not None:
        raise CheckpointError(f"The checkpoint {path} is damaged in its record '{wrong}'.")


_ENCRYPTED, _FOLDER = 0x1, 0x10  # a bit of the flags, and one of the attributes


def _is_plain(entry: zipfile.ZipInfo, size: int) -> bool:
    a_file = not entry.is_dir() and not entry.external_attr & _FOLDER and not entry.flag_bits & _ENCRYPTED
    stored = entry.compress_type == zipfile.ZIP_STORED and entry.file_size == entry.compress_size
    return a_file and stored and entry.header_offset + entry.compress_size <= size


def _head_agrees(file: BinaryIO, entry: zipfile.ZipInfo) -> bool:
    """Whether the head in front of the data says what the index at the end says."""
    file.seek(entry.header_offset)
    mark, _, flags, method, _, _, _, _, name_length, _ = struct.unpack("<4sHHHIIIIHH", file.read(30))
    name = file.read(name_length)
    return bool(
        mark == b"PK\x03\x04" and method == entry.compress_type and not flags & _ENCRYPTED
        and name == entry.orig_filename.encode()
    )  # fmt: skip


def building(path: Path, what: str) -> AbstractContextManager[None]:
    """Build something from what a checkpoint holds; if that does not work, the file does not hold `what`."""
    return trusting(f"The file {path} does not hold {what}", CheckpointError)


def check_sizes(path: Path, weights: Any, sizes: Sequence[Any]) -> None:
    """Refuse sizes of layers that the weights beside them cannot have: they would ask for any amount of memory."""
    tensors = list(_tensors(weights))
    largest = max((size for tensor in tensors for size in tensor.shape), default=0)
    for size in sizes:
        if type(size) is not int or not 1 <= size <= largest:
            raise CheckpointError(
                f"The file {path} names a layer of size {str(size)[:40]} that its weights do not have."
            )
    if len(sizes) > len(tensors):
        raise CheckpointError(f"The file {path} names {len(sizes)} layers, but holds {len(tensors)} weights.")


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """All tensors in nested values."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _tensors(item)


class CheckpointStore:
    """The checkpoints of one run in one folder, named by a pattern such as `model_iter_{step}.pt`."""

    def __init__(self, folder: Path, kind: str, pattern: str = "step_{step}.pt", keep: Keep | None = None) -> None:
        if pattern.count("{step}") != 1:
            raise ValueError(f"the pattern {pattern!r} must contain {{step}} once")
        self.folder, self.kind, self.pattern, self.keep = folder, kind, pattern, keep or Keep()
        before, after = pattern.split("{step}")
        self._name = re.compile(re.escape(before) + r"(\d+)" + re.escape(after))
        self._halfway_name = re.compile(re.escape(before) + r"(\d+)_halfway" + re.escape(after))

    def path(self, step: int) -> Path:
        return self.folder / self.pattern.format(step=step)

    def steps(self) -> list[int]:
        """Steps of all checkpoints on disk, ascending; whether they are readable is not checked."""
        return self._steps(self._name)

    def _steps(self, name: re.Pattern[str]) -> list[int]:
        if not self.folder.is_dir():
            return []
        matches = (name.fullmatch(p.name) for p in self.folder.iterdir())
        return sorted(int(m.group(1)) for m in matches if m)

    def halfway_path(self, step: int) -> Path:
        return self.folder / self.pattern.format(step=f"{step}_halfway")

    def save_halfway(self, step: int, state: dict[str, Any]) -> None:
        """Write a state from the middle of the unit after `step`, beside the checkpoint of `step`, which may be the
        best; the next checkpoint replaces it."""
        save_checkpoint(self.halfway_path(step), self.kind, step, state)

    def save(self, step: int, state: dict[str, Any], score: float | None = None, chosen: bool = False) -> Path:
        """Write the checkpoint of `step`, note it if its `score` is the best so far, and drop what need not stay.

        `chosen`: whoever gives a score has compared already, and it is the best whatever its score.
        """
        save_checkpoint(self.path(step), self.kind, step, state, score)
        self.settle(step, score, chosen)
        return self.path(step)

    def settle(self, step: int, score: float | None, chosen: bool = False) -> None:
        """What follows from a checkpoint that is on the disk: it may be the best, and older files need not stay.
        Whoever goes on from it does this once more: the process that saved it may have been killed right after."""
        if score is not None:
            self.mark_best(step, score, chosen)
        self.prune(step)
        for old in self._steps(self._halfway_name):
            self.halfway_path(old).unlink(missing_ok=True)

    def is_halfway(self, checkpoint: Checkpoint) -> bool:
        """Whether it was saved in the middle of a unit: all that follows from the one before it has been done."""
        return checkpoint.path == self.halfway_path(checkpoint.step)

    def mark_best(self, step: int, score: float, chosen: bool = False) -> bool:
        """Remember `step` as the best if its score beats the best known, or if it was chosen; True if it did."""
        best = None if chosen else self.best()
        if best is not None and best[1] >= score and self.path(best[0]).exists():
            return False
        write_json(self.folder / "best.json", {"step": step, "score": score, "file": self.path(step).name})
        return True

    def best(self) -> tuple[int, float] | None:
        """(step, score) of the best checkpoint, if any was scored."""
        path = self.folder / "best.json"
        if not path.exists():
            return None
        data = read_json(path, CheckpointError)
        try:
            return int(data["step"]), float(data["score"])
        except (TypeError, KeyError, ValueError, OverflowError):
            raise CheckpointError(f"{path} does not say which checkpoint is the best; delete it.") from None

    def load_best(self, map_location: torch.device | str = "cpu") -> Checkpoint:
        best = self.best()
        if best is None:
            raise CheckpointError(f"No checkpoint in {self.folder} was scored yet.")
        return load_checkpoint(self.path(best[0]), self.kind, map_location)

    def load_latest(self, map_location: torch.device | str = "cpu") -> tuple[Checkpoint | None, list[str]]:
        """The newest usable checkpoint (None if there is none) and a sentence for each newer one that was not."""
        problems: list[str] = []
        files = [(step, 0, self.path(step)) for step in self.steps()]
        files += [(step, 1, self.halfway_path(step)) for step in self._steps(self._halfway_name)]
        for _, _, path in sorted(files, reverse=True):
            try:
                return load_checkpoint(path, self.kind, map_location), problems
            except CheckpointError as error:
                problems.append(str(error))
        return None, problems

    def prune(self, saved: int) -> None:
        """Drop what need not stay; never `saved`, which may follow an older one when newer ones were damaged."""
        if self.keep.last is None:
            return
        steps = self.steps()
        best = self.best()
        for step in steps[: -self.keep.last] if self.keep.last else steps:
            wanted = step == saved or (self.keep.every is not None and step % self.keep.every == 0)
            if not wanted and (best is None or step != best[0]):
                self.path(step).unlink(missing_ok=True)
