"""Raw-unit errors of L2 by hand, and the command on a tiny trained run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from marlab.lab.errors import UserError
from marlab.lab.runs.run import RunOptions
from marlab.market.learn.command import EvalL2Config, MarketTrainConfig
from marlab.market.learn.command import eval_l2_main as main
from marlab.market.learn.eval_l2 import eval_l2
from marlab.market.learn.evaluate import goal_errors
from marlab.market.learn.phases import train
from marlab.market.logs.worldfile import read_world
from marlab.market.samples.extract import extract
from marlab.market.samples.options import SampleOptions
from tests.market.sample_tools import write_dataset

TINY = Path(__file__).parents[2] / "golden" / "market" / "tiny_world.parquet"


def test_perfect_goals_have_no_error_and_an_offset_shows_as_itself() -> None:
    rng = np.random.default_rng(0)
    target = rng.uniform(0, 5, (50, 16))
    roles = np.tile([1.0, 0.0], (50, 1))
    perfect = goal_errors(target, target, roles)
    assert all(perfect[part][key] == 0 for part in "QP" for key in ("mae", "rmse", "mean_rel_err"))
    shifted = target.copy()
    shifted[:, ::2] += 1
    found = goal_errors(shifted, target, roles)
    buying = target[:, [0, 4, 8, 12]]
    assert found["Q"]["mae"] == pytest.approx(1) and found["P"]["mae"] == 0
    assert found["Q"]["mean_rel_err"] == pytest.approx((1 / np.maximum(buying, 1)).mean())
    assert found["Q"]["mean_target"] == pytest.approx(buying.mean())
    far = target.copy()
    far[:, [2, 3, 6, 7, 10, 11, 14, 15]] += 100  # a side that is not traded on
    assert goal_errors(far, target, roles)["Q"]["mae"] == 0


def test_the_command_judges_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = [extract(log, SampleOptions()) for log in read_world(TINY).tracked()]
    write_dataset(tmp_path / "data", {"train": logs[0], "val": logs[-1]}, {})
    config = MarketTrainConfig(data=tmp_path / "data", phases="l2", l2_epochs=2, device="cpu")
    run = train(config, RunOptions(output_dir=tmp_path / "run"), quiet=True).path
    assert main([str(run), "--split", "val", "--output-dir", str(tmp_path)]) == 0
    assert "gap only" in capsys.readouterr().out and (tmp_path / "eval_l2_val.json").exists()
    assert eval_l2(EvalL2Config(run / "checkpoints" / "l2_bc.pt", "val", tmp_path / "data"))["days"] > 0
    with pytest.raises(UserError, match="no split 'test'"):
        eval_l2(EvalL2Config(run, "test"))
    with pytest.raises(UserError, match="--data"):
        eval_l2(EvalL2Config(run / "checkpoints" / "l2_bc.pt"))
    with pytest.raises(UserError, match="no L2 model"):
        eval_l2(EvalL2Config(tmp_path / "data"))
