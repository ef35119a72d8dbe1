"""Checkpoints in three files: what plays, what training needs to go on, and what it remembers.

    model_iter_50.pt   weights that play: small, one for every checkpoint that is kept
    state_50.pt        all else that the next unit depends on: the last two
    memory_50.pt       a replay memory, many times larger: the newest only

They are written in this order, and older ones go only when all three are on the disk and could be read back, so a kill
at any moment leaves a state with the memory that it was saved with. Weights are in the state too: without a file of
them no training is lost. A damaged state sends training back to the one before it; without its memory it goes on with
an empty one.
"""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from marlab.lab.runs.checkpoint import (
    Checkpoint,
    CheckpointError,
    CheckpointStore,
    Keep,
    load_checkpoint,
    save_checkpoint,
    verify_archive,
)

_BELONGS = "memory"  # in a state: name and mark of the memory that it was saved with


class SplitStore(CheckpointStore):
    """Checkpoints of a trainer whose state has the weights that play, and perhaps a memory, under keys of their own.

    `load_state_dict` of such a trainer does without the weights' key, and takes a missing memory for an empty one.
    """

    def __init__(
        self, folder: Path, kind: str, pattern: str, keep: Keep | None = None, *, weights: str,
        memory: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(folder, kind, pattern, keep)
        self.weights, self.memory = weights, memory
        self._remembered: Path | None = None  # the memory that belongs to the newest state
        self.states = CheckpointStore(folder, f"{kind}/state", "state_{step}.pt")

    def save(self, step: int, state: dict[str, Any], score: float | None = None, chosen: bool = False) -> Path:
        """Write the three files of `step`, note it if its `score` is the best so far, and drop what need not stay."""
        path, rest = self.path(step), {k: v for k, v in state.items() if k not in (self.weights, self.memory)}
        save_checkpoint(path, self.kind, step, {self.weights: state[self.weights]})
        if self.memory is not None:
            remembered = self._remembered = self._free_name(step)
            save_checkpoint(remembered, f"{self.kind}/memory", step, {self.memory: state[self.memory]})
            verify_archive(remembered)
            rest = {_BELONGS: [remembered.name, _mark(remembered)], "rest": rest}
        save_checkpoint(self.states.path(step), self.states.kind, step, rest, score)
        verify_archive(self.states.path(step))
        self.settle(step, score, chosen)
        return path

    def settle(self, step: int, score: float | None, chosen: bool = False) -> None:
        super().settle(step, score, chosen)
        self._drop_others(step)

    def save_halfway(self, step: int, state: dict[str, Any]) -> None:
        """As any other: here a state may be written over, because what plays has a file of its own."""
        self.save(step, state)

    def _memories(self) -> list[Path]:
        return sorted(self.folder.glob("memory_*.pt"))

    def _free_name(self, step: int) -> Path:
        """A unit may be saved halfway after it was saved at its beginning; that memory must stay until then."""
        path = self.folder / f"memory_{step}.pt"
        return self.folder / f"memory_{step}_later.pt" if path.exists() else path

    def _drop_others(self, step: int) -> None:
        """The state before this one and its own memory stay; a newer state was damaged, or training would be there."""
        before = [s for s in self.states.steps() if s < step][-1:]
        for old in set(self.states.steps()) - {*before, step}:
            self.states.path(old).unlink(missing_ok=True)
        self._drop_other_memories()

    def _drop_other_memories(self) -> None:
        for path in self._memories():
            if path != self._remembered:
                path.unlink(missing_ok=True)

    def load_latest(self, map_location: torch.device | str = "cpu") -> tuple[Checkpoint | None, list[str]]:
        """What training goes on from: the newest usable state, together with its memory where that is usable."""
        found, problems = self.states.load_latest(map_location)
        if found is None or self.memory is None:
            return found, problems
        state, note = found.state["rest"], ""
        try:
            state = {**state, **self._memory_of(found, map_location)}
        except CheckpointError as error:
            note = f"{error} Training goes on with an empty memory, which fills again."
        self._drop_other_memories()  # one that a kill left before its state was written is nobody's
        return replace(found, state=state, note=note), problems

    def _memory_of(self, found: Checkpoint, map_location: torch.device | str) -> dict[str, Any]:
        name, mark = found.state[_BELONGS]
        path = self._remembered = self.folder / name
        remembered = load_checkpoint(path, f"{self.kind}/memory", map_location)
        if self.memory not in remembered.state or _mark(path) != mark:
            raise CheckpointError(f"The memory {path} does not belong to the state {found.path}.")
        return remembered.state


def _mark(path: Path) -> str:
    """What tells one archive from another: names, sizes and checksums of its entries."""
    with zipfile.ZipFile(path) as archive:
        entries = [(entry.filename, entry.file_size, entry.CRC) for entry in archive.infolist()]
    return hashlib.blake2b(repr(entries).encode(), digest_size=16).hexdigest()
