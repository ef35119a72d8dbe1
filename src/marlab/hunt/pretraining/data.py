"""Offline rows as tensors on the device, ready for training models of others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from marlab.hunt.data.dataset import Part
from marlab.hunt.data.legacy import with_rows_after_exit
from marlab.hunt.game.build import restore
from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.rows import mark_paths, row_layout, rows_of_planes
from marlab.hunt.game.symmetry import Symmetry
from marlab.hunt.others.codes import captured, certain
from marlab.hunt.others.config import GoalSource
from marlab.hunt.others.history import Sequences, sequences_of, subgoal_rows
from marlab.hunt.players.seats import Kind


class GoalData(NamedTuple):
    """Rows [R] of whole sequences; everything but the offsets lies on the device."""

    planes: Tensor  # [R, H, W, C] uint8
    seen: Tensor  # [R, W] uint8, what the networks read of them (`game.rows`)
    mask: Tensor  # [R, A] bool
    time: Tensor  # [R] float32, t / T_max
    action: Tensor  # [R] int64
    joint: Tensor  # [R, n] int64
    goal: Tensor  # [R, 2] float32, how probable stag and hare are as the row's goal; even where nothing tells
    outcome: Tensor  # [R] int64, how the episode ends for the player: none, stag or hare
    slot: Tensor  # [R] int64, a fixed assignment to the n - 1 slots, for evaluation
    subgoal: Tensor  # [R] int64, row of the hindsight subgoal, at most `horizon` steps ahead
    offsets: Tensor  # [S + 1] int64, on the CPU

    @property
    def rows(self) -> int:
        return self.action.shape[0]

    @property
    def sequences(self) -> int:
        return self.offsets.shape[0] - 1


class GoalBatch(NamedTuple):
    """Some rows of the data, perhaps turned or mirrored."""

    planes: Tensor  # [R, H, W, C] uint8
    seen: Tensor  # [R, W] uint8
    mask: Tensor  # [R, A] bool
    time: Tensor  # [R] float32
    action: Tensor  # [R] int64
    joint: Tensor  # [R, n] int64


class Turn(NamedTuple):
    """A symmetry of the grid, for planes and actions, and for rows."""

    symmetry: Symmetry
    columns: Tensor  # [W] column w of a turned row is this column of the row


def batch_of(data: GoalData, rows: Tensor, turn: Turn) -> GoalBatch:
    """The rows [R] of a data set, seen through a symmetry of the grid."""
    see = turn.symmetry
    return GoalBatch(
        see.planes(data.planes[rows]),
        data.seen[rows].index_select(-1, turn.columns),
        see.mask(data.mask[rows]),
        data.time[rows],
        see.actions(data.action[rows]),
        see.actions(data.joint[rows]),
    )


def goal_data(
    game: GameConfig,
    part: Part,
    source: GoalSource,
    horizon: int,
    device: torch.device | str,
    paths: bool = False,
    rows_after_exit: bool = False,
) -> GoalData:
    """Tensors of a part of a data set.

    source: "type" labels rows by the player's true type, anything else by what it captured in the end.
    rows_after_exit: the original's fault, rows of players who had left; without it they must not occur.
    """
    if rows_after_exit:
        part = with_rows_after_exit(part, game.players)
    rows = part.rows
    if not rows_after_exit and not bool(rows.alive[:, 0].all()):
        raise ValueError("the data holds rows of players who had left")
    outcome, kind = rows.outcome, rows.type
    goal = certain(kind == Kind.NS, kind == Kind.NH) if source == "type" else captured(outcome)
    return GoalData(
        planes=rows.obs.to(device), seen=_seen(game, part, paths).to(device), mask=rows.mask.to(device),
        time=(rows.t / game.final_time).to(device),
        action=rows.a.to(device), joint=rows.joint_a.to(device), goal=goal.to(device), outcome=outcome.to(device),
        slot=((rows.episode + rows.player) % (game.players - 1)).to(device),
        subgoal=subgoal_rows(part.offsets, horizon).to(device), offsets=part.offsets,
    )  # fmt: skip


def _seen(game: GameConfig, part: Part, paths: bool) -> Tensor:
    """[R, W] what the players' networks read."""
    layout, rows = row_layout(game, paths), part.rows
    seen = rows_of_planes(layout, rows.obs, rows.mask)
    if paths:
        me = torch.zeros(1, dtype=torch.int64)  # a player's own view is a game in which it has the first seat
        mark_paths(layout, seen.unsqueeze(1), *restore(game, rows.obs, rows.t), me)
    return seen


def row_batches(data: GoalData, size: int, order: Tensor) -> Iterator[Tensor]:
    """All rows once in the order [rows], in batches [size] (a last smaller one is left out if there are others)."""
    whole = max(1, data.rows // size)
    for batch in order[: whole * size].split(size):
        yield batch.to(data.planes.device)


def sequence_batches(data: GoalData, size: int, order: Tensor) -> Iterator[Sequences]:
    """All sequences once in the order [sequences], in batches of about `size` rows."""
    each = max(1, round(size * data.sequences / data.rows))
    for batch in order.split(each):
        yield sequences_of(data.offsets, batch).to(data.planes.device)


def all_sequences(data: GoalData, size: int) -> Iterator[Sequences]:
    """All sequences once, in order, in batches of about `size` rows."""
    yield from sequence_batches(data, size, torch.arange(data.sequences))


def some_sequences(part: Part, rows: int, generator: torch.Generator) -> Part:
    """Randomly chosen whole sequences with about `rows` rows in all (everything if there are not more)."""
    lengths = part.offsets.diff()
    order = torch.randperm(len(lengths), generator=generator)
    enough = int((lengths[order].cumsum(0) < rows).sum()) + 1
    chosen = torch.zeros(len(lengths), dtype=torch.bool)
    chosen[order[:enough]] = True
    kept = part.rows.select(chosen.repeat_interleave(lengths).nonzero().squeeze(1))
    return Part(kept, torch.cat([torch.zeros(1, dtype=torch.int64), lengths[chosen].cumsum(0)]))
