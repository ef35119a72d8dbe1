"""The flags of `marlab market samples`."""

import pytest

from marlab.cli import main
from marlab.market.logs.worldfile import write_world
from marlab.market.logs.worldlog import WorldLog
from marlab.market.samples.dataset import open_dataset
from tests.market.sample_tools import tiny_world

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


def test_old_flags_are_translated_or_refused(logs, tmp_path, capsys):
    out = str(tmp_path / "run")
    words = [
        "market",
        "samples",
        "--tournament-dir",
        str(logs),
        "--num-workers",
        "1",
        "--val-ratio",
        "0",
        "--test-ratio",
    ]
    assert main([*words, "0", "--output-dir", out]) == 0
    assert open_dataset(tmp_path / "run").split("train").rows("macro") == WORLDS * 3 * 14
    assert "op reject" in capsys.readouterr().out
    assert main(["market", "samples", str(logs), "--allow-csv"]) == 2
    assert "lack what samples need" in capsys.readouterr().err
