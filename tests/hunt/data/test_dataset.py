"""Stored data: splits, replay equality, and data that must be refused."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from marlab.hunt.data.collect import collect
from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.data.dataset import SPLITS, Dataset, check_integrity, load_dataset
from marlab.hunt.game.config import game_config
from marlab.hunt.game.rules import ABSENT, STAY
from marlab.lab.errors import UserError
from marlab.lab.runs.run import RunOptions
from marlab.lab.runs.testing import assert_same


def made(folder: Path, **changes) -> Dataset:
    config = HuntCollectConfig(**{"rows": 6000, **changes})
    return load_dataset(collect(config, RunOptions(output_dir=folder), quiet=True).path)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return made(tmp_path_factory.mktemp("data") / "four")


def test_splits_are_by_episode_and_cover_everything(data: Dataset) -> None:
    episodes = [set(data.part(s).rows.episode.tolist()) for s in SPLITS]
    assert sum(map(len, episodes)) == data.episodes and not (episodes[0] & episodes[1] | episodes[1] & episodes[2])
    assert len(episodes[0]) == round(0.8 * data.episodes)
    part = data.part("validation")
    assert_same(part.rows.steps[part.offsets[:-1]], part.offsets.diff())


@pytest.mark.parametrize("changes", [{}, {"game": game_config("msh_8x8_b5"), "rand_share": 0.5, "seed": 3}])
def test_every_row_replays(tmp_path: Path, changes: dict) -> None:
    found = made(tmp_path / "d", **changes)
    integrity = check_integrity(found.game, found.rows, chunk=1000)
    assert integrity.equality == 1 and integrity.rows == found.rows.size
    assert "next_obs 100.00%" in str(integrity)


def test_a_wrong_row_is_found(data: Dataset) -> None:
    rows = data.rows._replace(a=data.rows.a.clone(), joint_a=data.rows.joint_a.clone(), r=data.rows.r + 0)
    moved = int((rows.a < STAY).nonzero()[0])
    rows.joint_a[moved, 0] = STAY  # what the original's data shows: a stay beside a visible move
    rows.r[5] += 1
    found = check_integrity(data.game, rows)
    assert (found.next_obs, found.reward, found.actions) == (rows.size - 1, rows.size - 1, rows.size)
    assert found.label == rows.size - 1  # the label no longer is what the joint action says
    relabelled = check_integrity(data.game, data.rows._replace(a=data.rows.a.roll(1)))
    assert relabelled.actions == rows.size and relabelled.label < rows.size and relabelled.equality < 1
    stale = data.rows._replace(joint_a=torch.where(data.rows.joint_a == ABSENT, 5, data.rows.joint_a))
    assert check_integrity(data.game, stale).actions == int(data.rows.alive.all(1).sum())


@pytest.mark.parametrize("name", ["a", "player", "steps", "joint_a", "mask", "alive", "episode"])
def test_damaged_tables_are_one_sentence(data: Dataset, tmp_path: Path, name: str) -> None:
    rows = pq.read_table(data.path / "data" / "rows.parquet")
    folder = tmp_path / "data"
    folder.mkdir()
    pq.write_table(pq.read_table(data.path / "data" / "sequences.parquet"), folder / "sequences.parquet")
    at = rows.column_names.index(name)
    for damaged in (
        rows.drop_columns([name]),
        rows.set_column(at, name, pa.nulls(rows.num_rows, pa.int64())),
        rows.set_column(at, name, pa.array([-1] * rows.num_rows)),
        rows.set_column(at, name, pa.array(["x"] * rows.num_rows)),
    ):
        pq.write_table(damaged, folder / "rows.parquet")
        with pytest.raises(UserError, match="is damaged"):
            load_dataset(tmp_path)


def test_unusable_data_is_refused_in_one_sentence(data: Dataset, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="of another game: its height is 4, expected 8"):
        load_dataset(data.path, game_config("msh_8x8_b5"))
    with pytest.raises(UserError, match=r"There is no data set at .*rows.parquet is missing"):
        load_dataset(tmp_path)
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("rows", "sequences"):
        table = pq.read_table(data.path / "data" / f"{name}.parquet")
        pq.write_table(table.slice(0, 0), folder / f"{name}.parquet")
    with pytest.raises(UserError, match="is empty"):
        load_dataset(tmp_path)
    pq.write_table(pq.read_table(data.path / "data" / "sequences.parquet"), folder / "sequences.parquet")
    with pytest.raises(UserError, match="is empty"):
        load_dataset(tmp_path)
    rows = pq.read_table(data.path / "data" / "rows.parquet")
    pq.write_table(rows.slice(0, 10), folder / "rows.parquet")
    with pytest.raises(UserError, match="is incomplete"):
        load_dataset(tmp_path)
    told = json.loads(rows.schema.metadata[b"marlab"]) | {"schema": 99}
    pq.write_table(rows.replace_schema_metadata({b"marlab": json.dumps(told).encode()}), folder / "rows.parquet")
    with pytest.raises(UserError, match="schema 99"):
        load_dataset(tmp_path)
    (folder / "rows.parquet").write_bytes(b"nothing")
    with pytest.raises(UserError, match="not part of a marlab data set"):
        load_dataset(tmp_path)
    with pytest.raises(UserError, match="expected 1 or more"):
        HuntCollectConfig(rows=0)
    with pytest.raises(UserError, match="no stag and hare players"):
        HuntCollectConfig(game=game_config("msg_4x4"))
