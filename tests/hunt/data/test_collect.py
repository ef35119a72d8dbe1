"""Offline data: rows, splits, replay equality, classes, and data that must be refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from marlab.hunt.commands import collect as command
from marlab.hunt.data.collect import class_report, collect, in_memory
from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.data.dataset import BLOCKED, RANDOM, WAIT, Dataset, load_dataset
from marlab.hunt.game.config import game_config
from marlab.hunt.game.rules import ABSENT
from marlab.hunt.players.seats import Kind
from marlab.lab.errors import UserError
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.runs.testing import assert_same


def made(folder: Path, **changes) -> Dataset:
    config = HuntCollectConfig(**{"rows": 6000, **changes})
    return load_dataset(collect(config, RunOptions(output_dir=folder), quiet=True).path)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return made(tmp_path_factory.mktemp("data") / "four")


def test_rows_are_those_of_living_players_in_order(data: Dataset) -> None:
    rows = data.rows
    assert 6000 <= rows.size < 6150
    assert rows.alive[:, 0].all() and (rows.joint_a[:, 0] == rows.a).all() and (rows.a < ABSENT).all()
    assert ((rows.joint_a == ABSENT) == ~rows.alive).all()
    assert rows.mask.gather(1, rows.a.unsqueeze(1)).all()
    key = (rows.episode * 4 + rows.player) * 64 + rows.t
    assert (key.diff() > 0).all()
    assert_same(data.offsets.diff(), rows.steps[data.offsets[:-1]])
    last = torch.zeros(rows.size, dtype=torch.bool)
    last[data.offsets[1:] - 1] = True
    assert_same(rows.done_i, last)  # a player's last row, and only that, is its end
    assert ((rows.r > 0) == (last & (rows.outcome > 0))).all()
    follows = ~last
    following = follows.nonzero().squeeze(1)
    assert_same(rows.next_obs[following], rows.obs[following + 1])
    assert set(rows.type.unique().tolist()) == {Kind.NS, Kind.NH}


def test_classes_come_near_the_original_and_every_stay_has_a_cause(tmp_path: Path) -> None:
    found = made(tmp_path / "d", rows=40_000)
    report = class_report(found.rows)
    assert report["l1_to_original"] < 0.08
    assert sum(row["count"] for row in report["actions"].values()) == found.rows.size
    stays = sum(row["count"] for row in report["stay_causes"].values())
    assert stays == report["actions"]["stay"]["count"] > 0.3 * found.rows.size
    waiting = found.rows.cause == WAIT
    assert (found.rows.type[waiting] == Kind.NS).all()
    on_stag = (found.rows.obs[waiting][..., 0] & found.rows.obs[waiting][..., 5]).flatten(1).any(1)
    assert on_stag.all()
    assert not (found.rows.cause == BLOCKED).any() and not (found.rows.cause == RANDOM).any()


def test_the_same_seed_gives_the_same_files(tmp_path: Path) -> None:
    files = []
    for name in ("a", "b"):
        path = collect(HuntCollectConfig(rows=800), RunOptions(output_dir=tmp_path / name), quiet=True).path
        files.append([(path / "data" / f).read_bytes() for f in ("rows.parquet", "sequences.parquet", "classes.json")])
    assert files[0] == files[1]
    other = load_dataset(
        collect(HuntCollectConfig(rows=800, seed=1), RunOptions(output_dir=tmp_path / "c"), quiet=True).path
    )
    assert not torch.equal(other.rows.a[:500], load_dataset(tmp_path / "a").rows.a[:500])


def test_the_command_collects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = tmp_path / "run"
    assert command(["--preset", "msh_2p_4x4", "--rows", "300", "--output-dir", str(where)]) == 0
    said = capsys.readouterr().out
    assert "replay equality" in said and "stay, by cause" in said
    assert load_dataset(where).game == game_config("msh_2p_4x4")
    with pytest.raises(UserError, match="exists already"):
        command(["--preset", "msh_2p_4x4", "--rows", "300", "--output-dir", str(where)])


def test_a_stopped_collection_keeps_no_half_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = HuntCollectConfig(rows=16_000)
    with monkeypatch.context() as patch:
        patch.setattr(Run, "should_stop", lambda self: True)
        run = collect(config, RunOptions(output_dir=tmp_path / "run"), quiet=True)
    assert run.status == "interrupted" and not list((run.path / "data").glob("*.parquet"))
    assert "of 16,000 rows, and nothing is kept" in run.verdict[0] and 0 < run.results["rows"] < 16_000
    run = collect(config, RunOptions(output_dir=tmp_path / "run", resume=True), quiet=True)
    assert run.status == "finished" and run.verdict[0].startswith("The data is sound: all 16,")


def test_a_data_set_in_memory_is_the_one_in_the_files(tmp_path: Path) -> None:
    stored, kept = made(tmp_path / "d", rows=2000), in_memory(HuntCollectConfig(rows=2000))
    for name, one, other in zip(stored.rows._fields, stored.rows, kept.rows):
        assert torch.equal(one, other), name
    assert torch.equal(stored.offsets, kept.offsets) and torch.equal(stored.split_of, kept.split_of)
    assert (stored.game, stored.about) == (kept.game, kept.about)
