"""`marlab hunt collect`: rule-based players play whole episodes, and every step of every living player is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.data.dataset import (
    BLOCKED,
    CAUSES,
    FALLBACK,
    NOT_STAY,
    RANDOM,
    SPLITS,
    WAIT,
    Dataset,
    Rows,
    check_integrity,
    load_dataset,
    metadata,
    rows_table,
)
from marlab.hunt.game.build import make_game
from marlab.hunt.game.rules import ACTION_NAMES, STAY, Game
from marlab.hunt.game.views import View
from marlab.hunt.players.published import CLASSES
from marlab.hunt.players.rollout import Moment, captures, moments
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind
from marlab.lab.config import Preset
from marlab.lab.progress import Progress, stage
from marlab.lab.runs.files import replacing, write_json
from marlab.lab.runs.rng import Rngs
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.verdict import say

if TYPE_CHECKING:
    import pyarrow as pa

EPISODES_AT_ONCE = 512
TRAIN_SHARE = 0.8
"""Of the episodes; the rest is halved into validation and test."""


class EpisodeBatch(NamedTuple):
    """Rows of some whole episodes, and their lengths per (episode, player)."""

    rows: Rows
    steps: Tensor  # [E, n] int64


def collect(
    config: HuntCollectConfig,
    options: RunOptions | None = None,
    *,
    preset: Preset | None = None,
    command: Sequence[str] | None = None,
    quiet: bool = False,
) -> Run:
    """Collect a data set into a run directory, and check it row by row."""
    with Run.open("hunt", config, options, preset=preset, command=command) as run:
        try:
            _write_rows(config, run.path / "data", quiet, run.should_stop)
        except Stopped as stopped:
            run.add_results({"rows": stopped.rows})
            run.set_verdict(say("hunt.data_cut", rows=stopped.rows, wanted=config.rows), say("lab.go_on"))
            run.leave()
        judge_data(run, config, quiet)
    return run


def judge_data(run: Run, config: HuntCollectConfig, quiet: bool) -> None:
    """What was collected: does it agree with the game, and whose moves does it hold?"""
    with stage("playing the rows again", quiet=quiet):
        data = load_dataset(run.path, config.game)
        integrity = check_integrity(data.game, data.rows)
    if integrity.equality < 1:
        run.log(f"The data disagrees with the game, do not learn from it: {integrity}")
    classes = class_report(data.rows)
    write_json(run.path / "data" / "integrity.json", integrity._asdict())
    write_json(run.path / "data" / "classes.json", classes)
    run.add_results(
        {
            "rows": data.rows.size,
            "episodes": data.episodes,
            "replay_equality": integrity.equality,
            "l1_to_original": classes["l1_to_original"],
            "stay_share": classes["actions"]["stay"]["share"],
        }
    )
    sound = say("hunt.data_sound", rows=data.rows.size, episodes=data.episodes)
    if integrity.equality < 1:
        sound = say("hunt.data_unsound", rows=data.rows.size, equality=integrity.equality)
    run.set_verdict(sound, say("hunt.next_data"))
    if not quiet:
        print(f"{data.rows.size} rows of {data.episodes} episodes in {run.path}; {integrity}")
        print(describe_classes(classes))


def play_batches(config: HuntCollectConfig) -> Iterator[EpisodeBatch]:
    """Endless batches of whole episodes; episode numbers are filled in by the writer."""
    rngs = Rngs(config.seed)
    game = make_game(config.game, rngs.torch("maps"))
    players = RulePlayers(game, [Kind.NS] * game.players)
    while True:
        types = _draw_types(config, game, rngs.torch("types"))
        start = game.reset(EPISODES_AT_ONCE, rngs.torch("starts"))
        played = moments(game, players, start, players.memory_of(types), rngs.torch("players"))
        moves = list(played)
        rows, steps, _ = rows_of(game, types, moves, [_causes(game, types, moment) for moment in moves])
        yield EpisodeBatch(rows, steps)


def _draw_types(config: HuntCollectConfig, game: Game, generator: torch.Generator) -> Tensor:
    """[E, n] a rule for every player, independently."""
    coins = torch.rand(2, EPISODES_AT_ONCE, game.players, generator=generator)
    types = torch.where(coins[0] < 0.5, int(Kind.NS), int(Kind.NH))
    return torch.where(coins[1] < config.rand_share, int(Kind.RAND), types)


def rows_of(
    game: Game, types: Tensor, played: Sequence[Moment], causes: Sequence[Tensor]
) -> tuple[Rows, Tensor, Tensor]:
    """Rows of living players from the steps of B whole episodes, sorted by episode, player and time; [B, n] steps of
    each player; and [B, n, T] who took part when. types, causes: [B, n], of the players and of every step.
    """
    games, seats = len(types), torch.arange(game.players).expand_as(types)
    kept = torch.stack([m.running.unsqueeze(1) & m.view.state.alive for m in played], 2)
    outcome = torch.zeros_like(types)
    for m in played:
        outcome = torch.where(m.running.unsqueeze(1), captures(game, m.outcome, outcome), outcome)

    def rows(values: Iterable[Tensor]) -> Tensor:
        """[R, ...] from one [B, n, ...] (or [B] for everyone) per step."""
        wide = [v.unsqueeze(1).expand(-1, game.players) if v.dim() == 1 else v for v in values]
        return torch.stack(wide, 2)[kept]

    def constant(value: Tensor) -> Tensor:
        return rows([value] * len(played))

    made = Rows(
        obs=rows(m.view.grid for m in played), mask=rows(m.view.mask for m in played),
        actions_prev=rows(m.view.actions for m in played), alive=rows(m.view.alive for m in played),
        t=rows(m.view.state.t for m in played), a=rows(m.outcome.executed for m in played),
        joint_a=rows(m.outcome.executed[:, game.ego] for m in played), r=rows(m.outcome.reward for m in played),
        next_obs=rows(View(game, m.after).grid for m in played), done_i=rows(m.outcome.done for m in played),
        done_all=rows(m.outcome.over for m in played), episode=constant(torch.arange(games)), player=constant(seats),
        type=constant(types), outcome=constant(outcome), steps=constant(kept.sum(2)), cause=rows(causes),
        first_hunt=rows(m.view.state.first_hunt for m in played),
    )  # fmt: skip
    return made, kept.sum(2), kept


def _causes(game: Game, types: Tensor, moment: Moment) -> Tensor:
    """[E, n] why each player executed STAY, as an index of CAUSES."""
    stags = game.at_prey(moment.view.state)[..., : game.config.stags].any(2)
    cause = torch.where(stags & (types == Kind.NS), WAIT, FALLBACK)
    cause = torch.where(types == Kind.RAND, RANDOM, cause)
    cause = torch.where(moment.asked != STAY, BLOCKED, cause)
    return torch.where(moment.outcome.executed == STAY, cause, NOT_STAY)


# --- writing ------------------------------------------------------------------------------------------------------


class Stopped(Exception):
    """Somebody wants the process to end, or the time is up."""

    def __init__(self, rows: int) -> None:
        super().__init__(f"stopped at {rows} rows")
        self.rows = rows


def _write_rows(config: HuntCollectConfig, folder: Path, quiet: bool, should_stop: Callable[[], bool]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    header = metadata(config.game, _about(config))
    sequences: list[pa.Table] = []
    written = 0
    with (
        replacing(folder / "rows.parquet") as temporary,
        Progress("collecting", total=config.rows, unit="rows", quiet=quiet) as bar,
    ):
        writer: pq.ParquetWriter | None = None
        episodes = 0
        for rows, steps in _numbered(config):
            table = rows_table(rows).replace_schema_metadata(header)
            writer = writer or pq.ParquetWriter(temporary, table.schema, compression="zstd")
            writer.write_table(table)
            sequences.append(_sequence_table(rows, steps, episodes))
            written, episodes = written + rows.size, episodes + steps.shape[0]
            bar.advance(rows.size)
            if written < config.rows and should_stop():
                writer.close()
                raise Stopped(written)
        assert writer is not None
        writer.close()
    table = _with_split(pa.concat_tables(sequences), episodes, config)
    with replacing(folder / "sequences.parquet") as temporary:
        pq.write_table(table.replace_schema_metadata(header), temporary, compression="zstd")


def in_memory(config: HuntCollectConfig) -> Dataset:
    """The data set that `collect` would write and `load_dataset` read, without files: for machines without pyarrow."""
    parts, steps = zip(*_numbered(config))
    rows = Rows(*(torch.cat(fields) for fields in zip(*parts)))
    lengths = torch.cat(steps)  # [E, n]
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.flatten().cumsum(0)])
    split = torch.from_numpy(_splits(config, len(lengths)).astype(np.int64)).repeat_interleave(lengths.shape[1])
    return Dataset(Path("memory"), config.game, rows, offsets, split, _about(config))


def _numbered(config: HuntCollectConfig) -> Iterator[tuple[Rows, Tensor]]:
    """(rows, steps per episode and player) of whole episodes, numbered on, until there are enough rows."""
    written, episodes = 0, 0
    for batch in play_batches(config):
        rows, steps = _whole_episodes(batch, config.rows - written)
        yield rows._replace(episode=rows.episode + episodes), steps
        written, episodes = written + rows.size, episodes + steps.shape[0]
        if written >= config.rows:
            return


def _about(config: HuntCollectConfig) -> dict[str, Any]:
    return {"seed": config.seed, "rand_share": config.rand_share, "splits": list(SPLITS)}


def _splits(config: HuntCollectConfig, episodes: int) -> np.ndarray:
    """[episodes] the split of each, an index of SPLITS."""
    order = Rngs(config.seed).numpy("split").permutation(episodes)
    train = round(TRAIN_SHARE * episodes)
    validation = (episodes - train + 1) // 2
    split = np.empty(episodes, np.uint8)
    split[order] = np.repeat([0, 1, 2], [train, validation, episodes - train - validation])
    return split


def _whole_episodes(batch: EpisodeBatch, wanted: int) -> tuple[Rows, Tensor]:
    """The first episodes of a batch that together have at least `wanted` rows (all of them if they have fewer)."""
    total = batch.steps.sum(1).cumsum(0)  # [E]
    keep = min(int((total < wanted).sum()) + 1, total.shape[0])
    return batch.rows.select(torch.arange(int(total[keep - 1]))), batch.steps[:keep]


def _sequence_table(rows: Rows, steps: Tensor, first_episode: int) -> pa.Table:
    """One line per (episode, player); everybody takes part in the first step, so none is empty."""
    import pyarrow as pa

    flat = steps.flatten()
    first = torch.cat([torch.zeros(1, dtype=torch.int64), flat.cumsum(0)[:-1]])
    columns = {name: getattr(rows, name)[first].to(torch.uint8) for name in ("player", "type", "outcome")}
    episode = torch.arange(steps.shape[0]).repeat_interleave(steps.shape[1]) + first_episode
    return pa.table(
        {
            "episode": pa.array(episode.to(torch.int32).numpy()),
            **{name: pa.array(value.numpy()) for name, value in columns.items()},
            "steps": pa.array(flat.to(torch.int16).numpy()),
        }
    )


def _with_split(table: pa.Table, episodes: int, config: HuntCollectConfig) -> pa.Table:
    """Add where each sequence's rows start and its split; all players of an episode share the split."""
    import pyarrow as pa

    split = _splits(config, episodes)
    steps = table["steps"].to_numpy().astype(np.int64)
    table = table.append_column("offset", pa.array(np.concatenate([[0], steps.cumsum()[:-1]])))
    return table.append_column("split", pa.array(split[table["episode"].to_numpy()]))


# --- class distribution -------------------------------------------------------------------------------------------


def class_report(rows: Rows) -> dict[str, Any]:
    """Counts and shares of every action, the causes of STAY, and the L1 distance to the original's shares."""
    counts = torch.bincount(rows.a, minlength=len(ACTION_NAMES))
    shares = (counts / rows.size).tolist()
    stays = torch.bincount(rows.cause[rows.a == STAY], minlength=len(CAUSES))
    return {
        "rows": rows.size,
        "actions": {n: {"count": c, "share": s} for n, c, s in zip(ACTION_NAMES, counts.tolist(), shares)},
        "l1_to_original": sum(abs(a - b) for a, b in zip(shares, CLASSES)),
        "stay_causes": {
            name: {"count": c, "share_of_rows": c / rows.size} for name, c in zip(CAUSES[1:], stays[1:].tolist())
        },
    }


def describe_classes(report: dict[str, Any]) -> str:
    """The class distribution as a table."""
    lines = [f"{'action':<12} {'count':>8} {'share':>7} {'original':>9}"]
    for (name, row), original in zip(report["actions"].items(), CLASSES):
        lines.append(f"{name:<12} {row['count']:>8} {row['share']:>7.4f} {original:>9.4f}")
    lines.append(f"L1 distance to the original's shares: {report['l1_to_original']:.3f}")
    causes = ", ".join(f"{name} {row['share_of_rows']:.4f}" for name, row in report["stay_causes"].items())
    return "\n".join([*lines, f"stay, by cause (share of all rows): {causes}"])
