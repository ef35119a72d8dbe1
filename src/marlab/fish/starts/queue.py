"""The queue of hard starts: it lives outside the arenas, so that nothing is lost when a phase changes.

Stage s brings iterations_s slots for each of E arenas; slot j belongs to arena j mod E, and slot j holds entry
j mod n of a file with n entries. Two ways to serve them:

    fifo    (compat) every reset takes the next slot of its arena until the stock is used up
    cyclic  (fixed)  every reset takes one with a given probability; an empty stage is filled again

and two ways to move from stage to stage: by the calendar (`iterations`), or when a stage is used up (`consumption`).

Once per iteration the trainer feeds a plan to the world, lets it run, and settles what was used:

    world.feed(queue.plan(slots, rng));  ...rollout...;  queue.settle(world.resets_since_feed.tolist())

Letters: S stages, E arenas, K slots planned per arena, M entries of all files together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from marlab.fish.sea.stats import MAX_STAGES
from marlab.fish.starts.files import Stage
from marlab.lab.errors import UserError

RECENT_RESETS = 256
QueueMode = Literal["cyclic", "fifo"]
StageAdvance = Literal["iterations", "consumption"]
Ints = NDArray[np.int64]


class PlannedStarts(NamedTuple):
    """What each arena's next resets will meet: slot k is for its k-th reset from now on."""

    active: Tensor  # [K, E] bool; False stands for an ordinary reset, which uses up the slot all the same
    velocity: Tensor  # [K, E, 2] m/s
    position: Tensor  # [K, E, 2] m, NaN: wherever an ordinary pre-roll ends
    stage: Tensor  # [K, E] int64, 0-based, -1 for an ordinary reset


class StartQueue:
    """Hands out hard starts and keeps the books."""

    def __init__(
        self, stages: Sequence[Stage], num_arenas: int, *, mode: QueueMode = "cyclic",
        advance: StageAdvance = "iterations", override_probability: float = 0.5,
    ) -> None:  # fmt: skip
        if not 0.0 <= override_probability <= 1.0:
            raise UserError(f"tail_override_probability is {override_probability:g}, expected 0 to 1.")
        if len(stages) > MAX_STAGES:
            raise UserError(f"tail_seed_stage_spec has {len(stages)} stages, expected at most {MAX_STAGES}.")
        self.stages, self.num_arenas = list(stages), num_arenas
        self.mode, self.advance, self.override_probability = mode, advance, override_probability
        self.types: tuple[str, ...] = tuple(dict.fromkeys(s.spec.type for s in self.stages))
        self.lost = 0  # slots thrown away at a phase change (compat)
        sets = [s.starts for s in self.stages]
        self._position = np.concatenate([np.zeros((0, 2)), *(s.position for s in sets)])  # [M, 2]
        self._velocity = np.concatenate([np.zeros((0, 2)), *(s.velocity for s in sets)])  # [M, 2]
        self._length = np.array([len(s) for s in sets], dtype=np.int64)  # [S] entries of a file
        self._first = np.cumsum(self._length) - self._length  # [S] its first row in the tables above
        self._cap = np.array([s.spec.iterations for s in self.stages], dtype=np.int64)  # [S] slots per arena
        self._end = np.cumsum(self._cap)  # [S] the same, summed up
        self._used = np.zeros((len(sets), num_arenas), dtype=np.int64)  # [S, E] slots handed out so far
        self._open = bool(sets)
        self._stage_now, self._stage_progress = 0, 0.0  # 0-based, by the calendar
        self._plan: tuple[NDArray[np.bool_], Ints] | None = None  # active [K, E] and stage [K, E]
        self._outcomes: list[bool] = []  # resets since `metrics`, True: overridden
        self._recent: deque[bool] = deque(maxlen=RECENT_RESETS)
        self._refilled_before = 0

    # --- the course of a run --------------------------------------------------------------------------------

    def begin_iteration(self, iteration: int) -> None:
        """Choose the active stage; by the calendar the stages follow each other and start over."""
        if self.advance == "iterations" and self.stages:
            day = (iteration - 1) % int(self._end[-1])
            self._stage_now = int(np.searchsorted(self._end, day, side="right"))
            start = self._end[self._stage_now] - self._cap[self._stage_now]
            self._stage_progress = float((day - start) / self._cap[self._stage_now])

    def drop(self) -> None:
        """Throw the remaining stock away, as the original did by accident at each phase change."""
        self.lost += self.remaining
        self._open = False

    # --- handing out ----------------------------------------------------------------------------------------

    def plan(self, slots: int, rng: np.random.Generator) -> PlannedStarts:
        """What the next `slots` resets of every arena will get; nothing is used up before `settle`."""
        shape = (slots, self.num_arenas)
        if not self._open:
            self._plan = np.zeros(shape, dtype=bool), np.full(shape, -1)
            return _planned(*self._plan, np.zeros((*shape, 2)), np.full((*shape, 2), np.nan))
        active = np.ones(shape, dtype=bool) if self.mode == "fifo" else rng.random(shape) < self.override_probability
        ahead = np.cumsum(active, axis=0) - active  # [K, E] slots used up by earlier resets of this plan
        stage, row = self._locate(ahead)
        if self.mode == "fifo":
            active &= row < self._cap[stage]
        slot = row * self.num_arenas + np.arange(self.num_arenas)
        entry = self._first[stage] + slot % self._length[stage]  # [K, E]
        self._plan = active, np.where(active, stage, -1)
        return _planned(*self._plan, self._velocity[entry], self._position[entry])

    def _locate(self, ahead: Ints) -> tuple[Ints, Ints]:
        """Stage and row within it [K, E] of the start that comes after each arena's next `ahead` ones."""
        if self.advance == "iterations":
            return np.full_like(ahead, self._stage_now), self._used[self._stage_now] + ahead
        taken = self._used.sum(axis=0) + ahead
        lap, rest = np.divmod(taken, self._end[-1])
        if self.mode == "fifo":  # past the end is past the end of the last stage
            lap, rest = np.zeros_like(taken), taken
        stage = np.minimum(np.searchsorted(self._end, rest, side="right"), len(self._end) - 1)
        return stage, lap * self._cap[stage] + rest - (self._end - self._cap)[stage]

    def settle(self, resets: ArrayLike) -> None:
        """Book the resets [E] that each arena made since `plan`; those beyond the plan were ordinary ones."""
        if self._plan is None:
            raise RuntimeError("settle() needs a plan() before it")
        (active, stage), self._plan = self._plan, None
        count = np.asarray(resets, dtype=np.int64)
        happened = np.arange(len(active))[:, None] < count  # [K, E]
        hit = happened & active
        arena = np.broadcast_to(np.arange(self.num_arenas), hit.shape)
        np.add.at(self._used, (stage[hit], arena[hit]), 1)
        self._outcomes += hit[happened].tolist() + [False] * int(np.maximum(count - len(active), 0).sum())

    # --- the books ------------------------------------------------------------------------------------------

    @property
    def capacity(self) -> int:
        """Slots of all stages and arenas."""
        return int(self._cap.sum()) * self.num_arenas

    @property
    def remaining(self) -> int:
        """Slots left before anything is filled again."""
        return int(self._remaining().sum())

    @property
    def handed_out(self) -> int:
        """Hard starts used by resets since the run began."""
        return int(self._used.sum())

    @property
    def refills(self) -> int:
        """Slots put back by the cyclic mode; `remaining` is always capacity - handed_out + refills - lost."""
        if self.mode == "fifo":
            return 0
        return int((self._used // self._cap[:, None] * self._cap[:, None]).sum())

    def _remaining(self) -> Ints:
        """Slots left per stage and arena [S, E]; a cyclic stage that runs empty is full again at once."""
        if not self._open:
            return np.zeros_like(self._used)
        cap = self._cap[:, None]
        return cap - (self._used % cap if self.mode == "cyclic" else self._used)

    def metrics(self) -> dict[str, Any]:
        """The iteration's numbers; clears what was counted since the last call."""
        hits, self._outcomes = self._outcomes, []
        self._recent.extend(hits)
        index = self._stage_index()
        spec = self.stages[index].spec if index >= 0 else None
        refilled = np.maximum(self._used - self._cap[:, None], 0).sum(axis=1)  # [S] starts served from a refill
        new_refilled, self._refilled_before = int(refilled.sum()) - self._refilled_before, int(refilled.sum())
        return {
            "prewarm_override_episodes": len(hits), "prewarm_override_hits": sum(hits),
            "prewarm_override_ratio": sum(hits) / len(hits) if hits else None,
            "prewarm_override_ratio_256": sum(self._recent) / len(self._recent) if self._recent else None,
            "tail_stage_index": index + 1, "tail_seed_stage_id": index + 1,
            "tail_stage_label": spec.label if spec else None, "tail_stage_type": spec.type if spec else None,
            "tail_stage_progress": self._progress(index), "tail_queue_remaining": self.remaining,
            "tail_queue_remaining_ratio": self.remaining / self.capacity if self.capacity else None,
            "tail_stage_remaining_by_type": self._by_type(self._remaining().sum(axis=1)),
            "tail_prewarm_injections": new_refilled, "tail_prewarm_injections_total": int(refilled.sum()),
            "tail_ne_reinjections": self._by_type(refilled).get("ne", 0),
        }  # fmt: skip

    def by_type(self, counts: Sequence[int]) -> dict[str, int]:
        """Sum the world's `*_by_stage` counts (ordinary starts first, then stage by stage) per type of stage."""
        stages = list(counts)[1 : len(self.stages) + 1]
        return {"ordinary": int(counts[0]), **self._by_type(stages)}

    def _by_type(self, per_stage: Sequence[int] | Ints) -> dict[str, int]:
        totals = dict.fromkeys(self.types, 0)
        for stage, count in zip(self.stages, per_stage):
            totals[stage.spec.type] += int(count)
        return totals

    def _stage_index(self) -> int:
        """0-based stage that is being served, -1 without stages."""
        if not self.stages:
            return -1
        if self.advance == "iterations":
            return self._stage_now
        rows = self.handed_out / self.num_arenas  # slots per arena, on average
        rows = rows % self._end[-1] if self.mode == "cyclic" else rows
        return min(int(np.searchsorted(self._end, rows, side="right")), len(self.stages) - 1)

    def _progress(self, index: int) -> float | None:
        """How far the active stage is, 0 to 1: by the calendar, or by what it has handed out."""
        if index < 0:
            return None
        if self.advance == "iterations":
            return self._stage_progress
        slots = int(self._cap[index]) * self.num_arenas
        taken = int(self._used[index].sum())
        return (taken % slots if self.mode == "cyclic" else taken) / slots

    # --- saving ---------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything but the files; call it between `settle` and the next `plan`."""
        if self._plan is not None:
            raise RuntimeError("settle the start queue before saving it")
        return {
            "used": torch.from_numpy(self._used.copy()), "open": self._open, "stage_now": self._stage_now,
            "stage_progress": self._stage_progress, "outcomes": [bool(x) for x in self._outcomes],
            "recent": [bool(x) for x in self._recent], "refilled_before": self._refilled_before, "lost": self.lost,
        }  # fmt: skip

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        used = np.asarray(state["used"], dtype=np.int64)
        if used.shape != self._used.shape:
            saved, here = (f"{s[0]} stages for {s[1]} arenas" for s in (used.shape, self._used.shape))
            raise UserError(f"The saved start queue has {saved}, but this run has {here}.")
        self._used, self._plan = used.copy(), None
        self._open, self.lost = state["open"], state["lost"]
        self._stage_now, self._stage_progress = state["stage_now"], state["stage_progress"]
        self._outcomes, self._recent = list(state["outcomes"]), deque(state["recent"], maxlen=RECENT_RESETS)
        self._refilled_before = state["refilled_before"]


def _planned(active: NDArray[np.bool_], stage: Ints, velocity: NDArray[Any], position: NDArray[Any]) -> PlannedStarts:
    return PlannedStarts(
        active=torch.from_numpy(active.copy()), velocity=torch.from_numpy(velocity.astype(np.float32)),
        position=torch.from_numpy(position.astype(np.float32)), stage=torch.from_numpy(stage.astype(np.int64)),
    )  # fmt: skip


class LowRatioWarning:
    """Speaks up when a ratio stays at or below a limit for `patience` iterations in a row; a limit of 0 is off."""

    def __init__(self, name: str, limit: float, patience: int) -> None:
        self.name, self.limit, self.patience = name, limit, patience
        self._low_for = 0  # iterations in a row

    @property
    def active(self) -> bool:
        return self.limit > 0 and self._low_for >= self.patience

    def update(self, iteration: int, ratio: float | None, label: str | None) -> dict[str, Any] | None:
        """The event of this iteration, if the warning starts or ends; a ratio of None says nothing."""
        if self.limit <= 0 or ratio is None:
            return None
        was_active, duration = self.active, self._low_for
        self._low_for = self._low_for + 1 if ratio <= self.limit else 0
        if self.active == was_active:
            return None
        return {
            "event": self.name, "state": "started" if self.active else "ended", "iteration": iteration,
            "ratio": ratio, "label": label, "duration": self._low_for if self.active else duration,
        }  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        return {"low_for": self._low_for}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._low_for = state["low_for"]
