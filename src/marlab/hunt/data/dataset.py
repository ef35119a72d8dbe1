"""Offline data on disk and in memory: one row per player and step, whole episodes, split by episode.

    data/rows.parquet       one row per step of a living player, sorted by episode, player, time
    data/sequences.parquet  one row per (episode, player): its rows start at `offset`; type, outcome, split

The metadata of both files holds the schema version and the game, so data cannot be read as that of another game.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from marlab.hunt.game.build import restore
from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.rules import ABSENT
from marlab.hunt.game.views import View
from marlab.hunt.players.seats import Kind
from marlab.lab.config import diff, from_dict, to_dict
from marlab.lab.errors import UserError
from marlab.lab.runs.arrays import read_parquet
from marlab.lab.runs.files import trusting

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = 1
SPLITS = ("train", "validation", "test")
SplitName = Literal["train", "validation", "test", "all"]

CAUSES = ("moved or hunted", "waiting on a stag", "prey gone", "blocked", "chosen at random")
"""Why a player executed STAY, by number; 0 means that it did something else."""
NOT_STAY, WAIT, FALLBACK, BLOCKED, RANDOM = range(5)


class Rows(NamedTuple):
    """Rows of a data set; planes and action lists are in the row's player's ego-first order."""

    obs: Tensor  # [R, H, W, channels] uint8
    mask: Tensor  # [R, A] bool
    actions_prev: Tensor  # [R, n] int64, ABSENT = 7
    alive: Tensor  # [R, n] bool
    t: Tensor  # [R] int64
    a: Tensor  # [R] int64, executed action
    joint_a: Tensor  # [R, n] int64, executed by all, ABSENT = 7
    r: Tensor  # [R] float32
    next_obs: Tensor  # [R, H, W, channels] uint8
    done_i: Tensor  # [R] bool: this player's last step
    done_all: Tensor  # [R] bool: the episode's last step
    episode: Tensor  # [R] int64
    player: Tensor  # [R] int64
    type: Tensor  # [R] int64, a Kind
    outcome: Tensor  # [R] int64: 0 none, 1 stag, 2 hare, at the end of the player's episode
    steps: Tensor  # [R] int64, T_i: the player's number of steps in the episode
    cause: Tensor  # [R] int64, an index of CAUSES
    first_hunt: Tensor  # [R] int64: step of the episode's first capture so far, -1 before it

    def select(self, index: Tensor) -> Rows:
        return Rows(*(field[index] for field in self))

    @property
    def size(self) -> int:
        return self.a.shape[0]


class Part(NamedTuple):
    """Some whole sequences: sequence s owns the rows offsets[s] to offsets[s + 1], in order of time."""

    rows: Rows
    offsets: Tensor  # [S + 1] int64


@dataclass(frozen=True)
class Dataset:
    """A whole data set in memory."""

    path: Path
    game: GameConfig
    rows: Rows
    offsets: Tensor  # [S + 1] int64: rows of each (episode, player)
    split_of: Tensor  # [S] int64: index of SPLITS
    about: dict[str, Any]  # how it was made

    @property
    def episodes(self) -> int:
        return int(self.rows.episode[-1]) + 1

    def part(self, split: SplitName) -> Part:
        """The sequences of one split, or of all; a split without any is refused."""
        if split == "all":
            return Part(self.rows, self.offsets)
        chosen = self.split_of == SPLITS.index(split)
        if not bool(chosen.any()):
            raise UserError(f"The data set {self.path} has no rows in its {split} split; collect more rows.")
        lengths = self.offsets.diff()
        offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths[chosen].cumsum(0)])
        return Part(self.rows.select(chosen.repeat_interleave(lengths).nonzero().squeeze(1)), offsets)


# --- files --------------------------------------------------------------------------------------------------------

_WIDE = ("obs", "mask", "actions_prev", "alive", "joint_a", "next_obs")  # fields with more than one value per row
_STORED = {
    **dict.fromkeys(("obs", "mask", "actions_prev", "alive", "joint_a", "next_obs", "a", "player"), np.uint8),
    **dict.fromkeys(("type", "outcome", "cause"), np.uint8),
    **dict.fromkeys(("t", "steps", "first_hunt"), np.int16),
    **dict.fromkeys(("done_i", "done_all"), np.bool_),
    "r": np.float32,
    "episode": np.int32,
}
_BOOL = ("mask", "alive", "done_i", "done_all")
_PLANES = ("obs", "next_obs")


def rows_table(rows: Rows) -> pa.Table:
    """Rows as a table; wide fields become lists of fixed size, planes row-major."""
    import pyarrow as pa

    columns = {}
    for name, field in rows._asdict().items():
        values = field.cpu().numpy().astype(_STORED[name], copy=False)
        if name in _WIDE:
            flat = np.ascontiguousarray(values).reshape(-1)
            columns[name] = pa.FixedSizeListArray.from_arrays(pa.array(flat), flat.size // max(1, len(values)))
        else:
            columns[name] = pa.array(values)
    return pa.table(columns)


def metadata(game: GameConfig, about: dict[str, Any]) -> dict[bytes, bytes]:
    """What a file of a data set says about itself."""
    return {b"marlab": json.dumps({"schema": SCHEMA, "kind": "hunt", "game": to_dict(game), "about": about}).encode()}


def load_dataset(path: Path, game: GameConfig | None = None) -> Dataset:
    """Read a data set from the run directory of `marlab hunt collect` (or its data folder).

    With `game`, data of any other game is refused.
    """
    folder = path / "data" if (path / "data").is_dir() else path
    table, header = _read(folder / "rows.parquet")
    with trusting(f"The data set {path} does not tell its game"):
        stored = from_dict(GameConfig, header["game"], f"the data set {path}")
    if game is not None:
        changed = diff(to_dict(game), to_dict(stored))
        if changed:
            key, wanted, has = changed[0]
            raise UserError(
                f"The data set {path} is of another game: its {key} is {has!r}, expected {wanted!r}; collect data with "
                "this game's preset."
            )
    sequences, _ = _read(folder / "sequences.parquet")
    if table.num_rows == 0 or sequences.num_rows == 0:
        raise UserError(f"The data set {path} is empty; collect it again with --rows above 0.")
    with trusting(f"The data set {path} is damaged"):
        lengths = torch.from_numpy(sequences["steps"].to_numpy().astype(np.int64))
        split_of = torch.from_numpy(sequences["split"].to_numpy().astype(np.int64))
        rows, about = _rows(table, stored), dict(header["about"])
        _check_range("steps of its sequences", lengths, 1, stored.final_time)
        _check_range("split", split_of, 0, len(SPLITS) - 1)
        _check_values(rows, stored)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    if int(offsets[-1]) != table.num_rows:
        raise UserError(
            f"The data set {path} is incomplete: its sequences list {int(offsets[-1])} rows, "
            f"rows.parquet holds {table.num_rows}; collect it again."
        )
    return Dataset(path, stored, rows, offsets, split_of, about)


def _read(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    if not path.is_file():
        raise UserError(f"There is no data set at {path.parent}: {path.name} is missing; make one with `hunt collect`.")
    with trusting(f"The file {path} is not part of a marlab data set"):
        table = read_parquet(path)
        header = json.loads((table.schema.metadata or {})[b"marlab"])
        if not isinstance(header, dict):
            raise ValueError("its header is no table")
    if header.get("kind") != "hunt" or header.get("schema") != SCHEMA:
        raise UserError(
            f"The file {path} holds {header.get('kind')} data of schema {header.get('schema')}, "
            f"this version of marlab reads hunt data of schema {SCHEMA}."
        )
    return table, header


def _rows(table: pa.Table, game: GameConfig) -> Rows:
    fields = {}
    for name in Rows._fields:
        column = table[name].combine_chunks()
        if name in _WIDE:
            values = column.flatten().to_numpy().reshape(len(column), -1)
        else:
            values = column.to_numpy(zero_copy_only=False)
        if name in _PLANES:
            planes = torch.from_numpy(values.copy())
            fields[name] = planes.view(-1, game.height, game.width, game.channels)
        elif name == "r":
            fields[name] = torch.from_numpy(values.copy())
        else:
            fields[name] = torch.from_numpy(values.astype(np.bool_ if name in _BOOL else np.int64))
    rows = Rows(**fields)
    wide = {"mask": game.actions, "actions_prev": game.players, "alive": game.players, "joint_a": game.players}
    for name, field in rows._asdict().items():
        if len(field) != table.num_rows or (name in wide and field.shape[1:] != (wide[name],)):
            raise ValueError(f"its {name} has the shape {tuple(field.shape)}")
    return rows


def _check_values(rows: Rows, game: GameConfig) -> None:
    """What models and replays use as numbers of something must be in its range."""
    most = {
        "actions_prev": ABSENT, "joint_a": ABSENT, "a": game.actions - 1, "t": game.final_time,
        "player": game.players - 1, "type": max(Kind), "outcome": 2, "steps": game.final_time + 1,
        "cause": len(CAUSES) - 1, "episode": rows.size, "first_hunt": game.final_time,
    }  # fmt: skip
    for name, largest in most.items():
        _check_range(name, getattr(rows, name), -1 if name == "first_hunt" else 0, largest)
    if not bool(torch.isfinite(rows.r).all()):
        raise ValueError("its rewards are not finite")


def _check_range(name: str, values: Tensor, low: int, high: int) -> None:
    if values.numel() and not low <= int(values.min()) <= int(values.max()) <= high:
        raise ValueError(f"its {name} goes from {int(values.min())} to {int(values.max())}, expected {low} to {high}")


# --- integrity ----------------------------------------------------------------------------------------------------


class Integrity(NamedTuple):
    """How many rows agree with a replay of the game from their own stored observation."""

    rows: int
    next_obs: int
    reward: int
    done: int
    actions: int  # the recorded joint action is what the game executes
    label: int  # the row's own action is that of its player in the joint action
    mask: int

    def shares(self) -> dict[str, float]:
        """By what is compared: the share of rows that agree."""
        return {name: getattr(self, name) / self.rows for name in self._fields[1:]}

    @property
    def equality(self) -> float:
        """The share of rows that agree, of what agrees least."""
        return min(self.shares().values())

    def __str__(self) -> str:
        shares = ", ".join(f"{name} {share:.2%}" for name, share in self.shares().items())
        return f"replay equality over {self.rows} rows: {shares}"


def check_integrity(game: GameConfig, rows: Rows, chunk: int = 16384) -> Integrity:
    """Set the game to every row's observation, execute the recorded joint action, and compare with the record."""
    totals = [0] * len(Integrity._fields)
    for start in range(0, rows.size, chunk):
        part = rows.select(torch.arange(start, min(start + chunk, rows.size)))
        for i, count in enumerate(_replay(game, part)):
            totals[i] += count
    return Integrity(*totals)


def _replay(config: GameConfig, rows: Rows) -> Integrity:
    index = torch.arange(rows.size)
    seats = torch.arange(config.players)
    ego = (seats - rows.player.unsqueeze(1)) % config.players  # [R, n]: where seat j stands in the row's order
    planes = rows.obs.clone()
    order = ego.view(-1, 1, 1, config.players).expand(-1, config.height, config.width, -1)
    planes[..., : config.players] = rows.obs[..., : config.players].gather(3, order)
    game, state = restore(config, planes, rows.t, rows.first_hunt)
    joint = rows.joint_a.gather(1, ego)
    mask = View(game, state).mask[index, rows.player]
    after, out = game.step(state, joint)
    seen = View(game, after).grid_of(rows.player.unsqueeze(1)).squeeze(1)
    done = (out.done[index, rows.player] == rows.done_i) & (out.over == rows.done_all)
    return Integrity(
        rows=rows.size,
        next_obs=int((seen == rows.next_obs).flatten(1).all(1).sum()),
        reward=int((out.reward[index, rows.player] == rows.r).sum()),
        done=int(done.sum()),
        actions=int((out.executed == joint).all(1).sum()),
        label=int((rows.a == rows.joint_a[:, 0]).sum()),
        mask=int((mask == rows.mask).all(1).sum()),
    )
