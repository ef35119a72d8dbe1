"""The flags of `marlab market samples`."""

import contextlib
from pathlib import Path

import pytest

from marlab.cli import main
from marlab.lab.config import from_dict, load_preset
from marlab.market.logs.worldfile import write_world
from marlab.market.logs.worldlog import WorldLog
from marlab.market.samples.command import PRESETS, SamplesConfig
from marlab.market.samples.dataset import open_dataset
from tests.market.sample_tools import TINY, tiny_world

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


@pytest.mark.parametrize("name", sorted(file.stem for file in PRESETS.glob("*.toml")))
def test_presets_are_valid_and_named_in_the_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    config = from_dict(SamplesConfig, load_preset(name, PRESETS).values, name)
    assert config.l1.rules == ("guide" if name == "guide" else "economic")
    assert config.features.extra is (name != "guide")
    with contextlib.suppress(SystemExit):
        main(["market", "samples", "--help"])
    assert name in capsys.readouterr().out


def test_wrong_l2_weights_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "l2_bc.pt").write_text("no weights")
    for wrong, said in ((tmp_path, "damaged, cut short, or not a checkpoint"), (tmp_path / "none", "There is no L2")):
        words = [str(TINY), "--goal-backfill", "l2", "--l2-model-path", str(wrong), "--output-dir", str(tmp_path / "x")]
        assert main(["market", "samples", *words]) == 2
        assert said in capsys.readouterr().err and not (tmp_path / "x").exists()


def test_a_wrong_choice_is_told_with_all_that_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["market", "samples", "x", "--goal-backfill", "nonsense"]) == 2
    assert "expected one of none, v2, l2. See" in capsys.readouterr().err
