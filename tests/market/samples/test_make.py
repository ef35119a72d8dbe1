"""`marlab market samples`: the data set, its statistics, resumption, and equality for any number of workers."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

from marlab.cli import main
from marlab.lab.config import to_dict
from marlab.lab.errors import UserError
from marlab.lab.runs.run import RunOptions
from marlab.market.guide import load_l4_samples, load_samples
from marlab.market.logs.worldfile import write_world
from marlab.market.logs.worldlog import WorldLog
from marlab.market.networks.manager import HorizonManagerPPO
from marlab.market.networks.weights import save_network
from marlab.market.samples.command import SamplesConfig
from marlab.market.samples.dataset import concatenate, open_dataset, schema
from marlab.market.samples.extract import extract
from marlab.market.samples.make import make_samples
from marlab.market.samples.options import SampleOptions
from marlab.market.samples.records import L4Samples, MacroSamples, MicroSamples
from marlab.market.samples.split import SplitOptions
from tests.market.sample_tools import TINY, records_equal, tiny_world, tracked_logs

WORLDS = 6


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Six worlds with different ids, and one file that is damaged."""
    folder = tmp_path_factory.mktemp("logs")
    world = tiny_world()
    for i in range(WORLDS):
        meta = {**world.meta, "world_id": f"w{i}", "spec": {**world.meta["spec"], "market_seed": i}}
        write_world(folder / "worlds" / f"w{i}.parquet", WorldLog(meta, world.tables, world.schedules, world.reach))
    return folder


def assert_same_data(a, b):
    for split in ("train", "val", "test"):
        x, y = open_dataset(a).split(split), open_dataset(b).split(split)
        assert [log._replace(path="") for log in x.logs] == [log._replace(path="") for log in y.logs]
        for table, columns in schema(x.sizes).items():
            for name in columns:
                np.testing.assert_array_equal(x.tables[table][name], y.tables[table][name], f"{split} {table}.{name}")


@pytest.fixture(scope="module")
def made(logs, tmp_path_factory):
    out = tmp_path_factory.mktemp("made") / "run"
    config = SamplesConfig(logs=str(logs), goal_backfill="v2", chunk=2)
    make_samples(config, RunOptions(output_dir=out), engine="serial", quiet=True)
    return out


def test_the_data_set_holds_the_samples_of_all_logs(logs, made):
    dataset = open_dataset(made)
    assert dataset.options["experts"] == ["PenguinAgent"] and dataset.options["l1"]["rules"] == "guide"
    split = json.loads((made / "world_split.json").read_text())["splits"]
    assert [len(split[name]) for name in ("train", "val", "test")] == [4, 1, 1]
    penguins = concatenate(
        [extract(log, SampleOptions()) for log in tracked_logs() if log.agent_type == "PenguinAgent"]
    )
    for name in dataset.splits:
        samples = dataset.split(name)
        assert sorted({log.world for log in samples.logs}) == split[name]
        for i in range(len(split[name])):
            rows = slice(i * penguins.rows("micro"), (i + 1) * penguins.rows("micro"))
            for column in ("baseline", "residual", "time_label", "history_length"):
                np.testing.assert_array_equal(samples.micro[column][rows], penguins.micro[column])
            everything = np.arange(penguins.rows("micro"))
            np.testing.assert_array_equal(
                samples.histories(everything + rows.start)[0], penguins.histories(everything)[0]
            )
        np.testing.assert_array_equal(samples.macro["goal"], samples.macro["label"])
    assert not (made / "parts").exists() and (made / "note.md").exists()
    assert {p.name for p in (made / "figures").glob("*.png")} == {"residuals.png", "operators.png", "goals.png"}


def test_statistics_count_what_is_there(made):
    stats = json.loads((made / "statistics.json").read_text())
    train = open_dataset(made).split("train")
    told = stats["train"]
    ops = np.bincount(train.micro["op"], minlength=3).tolist()
    assert told["ops"] == dict(zip(("accept", "reject", "end"), ops)) and told["micro"] == sum(ops)
    assert told["worlds"] == 4 and told["logs"] == 12 and told["macro"] == 12 * 14
    assert told["mean_history"] == pytest.approx(np.minimum(train.micro["history_length"], 20).mean())
    offers = (train.micro["op"] == 1).nonzero()[0]
    quantity = (train.micro["residual"] + train.micro["baseline"][:, :2])[offers, 0]
    assert told["quantity"]["n"] == len(offers) and told["quantity"]["p50"] == pytest.approx(np.median(quantity))
    assert told["baseline_source"] == {"recorded": 0, "computed": sum(ops)}
    assert told["breaks_caps"] == train.micro["breaks_caps"].sum() and told["all_masked"] == train.micro["masked"].sum()
    assert np.sum([told["ops_per_round"][name] for name in told["ops"]]) == sum(ops)
    assert stats["reading"]["bad"] == {} and stats["reading"]["decisions_without_day"] == 0


def test_several_workers_make_the_same_data_set(logs, made, tmp_path):
    out = tmp_path / "run"
    words = ["market", "samples", str(logs), "--agent-name", "Pe", "--goal-backfill", "v2", "--chunk", "1"]
    assert main([*words, "--workers", "2", "--output-dir", str(out), "--quiet", "--npz"]) == 0
    assert_same_data(made, out)
    for split in ("train", "val", "test"):
        samples = open_dataset(out).split(split)
        macro, micro = load_samples(out / "npz" / split)
        assert all(records_equal(a, b) for a, b in zip(MacroSamples.view(samples), macro, strict=True))
        assert all(records_equal(a, b) for a, b in zip(MicroSamples.view(samples), micro, strict=True))
        threads = load_l4_samples(out / "npz" / split)
        assert all(records_equal(a, b) for a, b in zip(L4Samples.view(samples), threads, strict=True))


def test_work_that_was_interrupted_is_continued(logs, made, tmp_path, monkeypatch):
    out = tmp_path / "run"
    config = SamplesConfig(logs=str(logs), goal_backfill="v2", chunk=2)
    monkeypatch.setattr("marlab.lab.runs.run.Run.must_stop", lambda run: any((out / "parts").glob("*.json")))
    run = make_samples(config, RunOptions(output_dir=out), engine="serial", quiet=True)
    monkeypatch.undo()
    assert run.verdict[0] == "1 of 4 parts are read; they become samples when all of them are."
    assert json.loads((out / "run.json").read_text())["status"] == "interrupted"
    kept = sorted((out / "parts").glob("*.json"))
    assert len(kept) == 1 and not (out / "data").exists()
    before = kept[0].stat().st_mtime_ns
    monkeypatch.setattr("marlab.market.samples.make.finish", lambda *args: 1 / 0)  # dies after merging
    with pytest.raises(ZeroDivisionError):
        make_samples(config, RunOptions(output_dir=out, resume=True), engine="serial", quiet=True)
    assert kept[0].stat().st_mtime_ns == before and len(list((out / "parts").glob("*.json"))) == 4
    with pytest.raises(UserError, match="not a finished set of samples"):
        open_dataset(out)
    monkeypatch.undo()
    make_samples(config, RunOptions(output_dir=out, resume=True), engine="serial", quiet=True)
    assert_same_data(made, out)


def test_new_logs_do_not_slip_into_a_run_that_was_begun(logs, made, tmp_path):
    other = tmp_path / "logs"
    shutil.copytree(logs, other)
    out = tmp_path / "run"
    config = SamplesConfig(logs=str(other))
    make_samples(config, RunOptions(output_dir=out), engine="serial", quiet=True)
    (other / "worlds" / "w5.parquet").unlink()
    with pytest.raises(UserError, match=r"are not those that .* was begun with"):
        make_samples(config, RunOptions(output_dir=out, resume=True), engine="serial", quiet=True)


def test_goals_of_a_trained_network_and_a_shared_split(logs, made, tmp_path):
    save_network(tmp_path / "l2_bc.pt", HorizonManagerPPO(), data=to_dict(SampleOptions()))
    config = SamplesConfig(
        logs=str(logs), goal_backfill="l2", l2_model_path=tmp_path, split_file=made / "world_split.json", chunk=4
    )
    out = tmp_path / "run"
    make_samples(config, RunOptions(output_dir=out), engine="serial", quiet=True)
    assert (out / "world_split.json").read_text() == (made / "world_split.json").read_text()
    ours, theirs = open_dataset(out).split("train"), open_dataset(made).split("train")
    np.testing.assert_array_equal(ours.macro["label"], theirs.macro["label"])
    assert (ours.macro["goal"] != theirs.macro["goal"]).any() and (ours.goals() >= 0).all()


def test_a_damaged_file_is_left_out_but_not_many(logs, tmp_path):
    folder = tmp_path / "logs"
    shutil.copytree(logs, folder)
    bad = folder / "worlds" / "w3.parquet"
    bad.write_bytes(bad.read_bytes()[:10_000])
    with pytest.raises(UserError, match=r"1 of 6 log files cannot be used; the first: .*w3\.parquet is damaged"):
        make_samples(
            SamplesConfig(logs=str(folder)), RunOptions(output_dir=tmp_path / "run"), engine="serial", quiet=True
        )
    assert not (tmp_path / "run").exists()  # the name stays free
    out = tmp_path / "again"
    bad.write_bytes((logs / "worlds" / "w3.parquet").read_bytes())
    for i in range(24):
        shutil.copy(TINY, folder / "worlds" / f"more{i}.parquet")
    table = pq.read_table(bad)
    pq.write_table(table.drop_columns(["decisions.op"]), bad)
    make_samples(SamplesConfig(logs=str(folder)), RunOptions(output_dir=out), engine="serial", quiet=True)
    reading = json.loads((out / "reading.json").read_text())
    assert (
        list(reading["bad"]) == [bad.as_posix()] and "lacks the column decisions.op" in reading["bad"][bad.as_posix()]
    )
    assert reading["days_without_reward"] == 0


def test_wrong_requests_leave_nothing_behind(logs, tmp_path):
    out = tmp_path / "run"
    for config, sentence in (
        (SamplesConfig(), "Give a run of `marlab market collect` or a folder with logs"),
        (SamplesConfig(logs=str(logs), agent_name="Nobody"), "No log is of an agent 'Nobody'"),
        (SamplesConfig(logs=str(logs), goal_backfill="l2"), "goal_backfill l2 needs the weights"),
        (SamplesConfig(logs=str(tmp_path / "no-such-run")), "no-such-run"),
    ):
        with pytest.raises(UserError, match=sentence):
            make_samples(config, RunOptions(output_dir=out), engine="serial", quiet=True)
    with pytest.raises(UserError, match="chunk is 0"):
        SamplesConfig(chunk=0)
    assert not out.exists()


def test_samples_are_made_where_the_simulator_is_not_installed():
    """Also without the command line's library: a GPU machine has torch, numpy, pyarrow, matplotlib and rich."""
    blocked = ("scml", "negmas", "scml_agents", "shtab", "gymnasium", "pettingzoo", "psutil", "plotly", "jinja2")
    code = f"""
import sys
for name in {blocked!r}:
    sys.modules[name] = None
import marlab.market.samples.goals, marlab.market.samples.command
import marlab.market.guide, marlab.market.networks.manager
from marlab.market.guide import load_tournament_data
macro, micro = load_tournament_data({str(TINY)!r}, "Pe", num_workers=1, goal_backfill="v2")
assert len(macro) == 42 and len(micro) == 139, (len(macro), len(micro))
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_split_by_market_keeps_all_worlds_of_a_market_on_one_side(tmp_path):
    """Other agents in the same market are no repetition, but they share its prices and contracts."""
    world = tiny_world()
    for market in range(4):
        for seats in range(2):
            spec = {
                **world.meta["spec"],
                "market_seed": market,
                "agents": [f"{seats}", *world.meta["spec"]["agents"][1:]],
            }
            meta = {**world.meta, "world_id": f"m{market}s{seats}", "spec": spec}
            log = WorldLog(meta, world.tables, world.schedules, world.reach)
            write_world(tmp_path / "logs" / f"m{market}s{seats}.parquet", log)
    config = SamplesConfig(logs=str(tmp_path / "logs"), split=SplitOptions(0.25, 0.25, split_by="market"))
    run = make_samples(config, RunOptions(output_dir=tmp_path / "run"), engine="serial", quiet=True).path
    splits = json.loads((run / "world_split.json").read_text())["splits"]
    assert [len(splits[name]) for name in ("train", "val", "test")] == [4, 2, 2]
    assert all(len({name[:2] for name in splits[side]}) == len(splits[side]) // 2 for side in splits)
