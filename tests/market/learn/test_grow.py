"""Going on with a training: the 40, 50, 60 workflow, small, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marlab.cli import main
from marlab.lab.config import to_dict
from marlab.lab.errors import UserError
from marlab.lab.runs.checkpoint import load_checkpoint
from marlab.lab.runs.testing import assert_same
from marlab.market.learn.command import MarketTrainConfig
from marlab.market.learn.grow import epochs_done, goes_on, grown, run_of
from marlab.market.learn.settings import Stage
from marlab.market.samples.extract import extract
from marlab.market.samples.options import SampleOptions
from tests.market.sample_tools import tracked_logs, write_dataset

NOTHING = {"l2": 0, "l3": 0, "awr": 0, "l4": 0}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    logs = [extract(log, SampleOptions()) for log in tracked_logs()]
    write_dataset(folder, {"train": logs[0], "val": logs[2]}, to_dict(SampleOptions()))
    return folder


def test_stages_tell_what_was_done_and_what_comes() -> None:
    first = MarketTrainConfig(l2_epochs=40, l2_lr=3e-4)
    second = grown(first, MarketTrainConfig(l2_epochs=50, l2_lr=1e-4), {**NOTHING, "l2": 40})
    assert second.l2_stages == "40:0.0003,10:0.0001" and second.stages("l3") == first.stages("l3")
    asked = MarketTrainConfig(l2_epochs=60, l2_lr=5e-5, l2_stages=second.l2_stages)
    third = grown(second, asked, {**NOTHING, "l2": 50})
    assert third.stages("l2") == [Stage(40, 3e-4), Stage(10, 1e-4), Stage(10, 5e-5)]
    assert grown(third, third, {**NOTHING, "l2": 60}) == third  # the same command again changes nothing
    cut = grown(first, MarketTrainConfig(l2_epochs=60, l2_lr=5e-5), {**NOTHING, "l2": 20})  # it was killed
    assert cut.stages("l2") == [Stage(20, 3e-4), Stage(40, 5e-5)]
    less = grown(first, MarketTrainConfig(l2_epochs=30, l2_lr=5e-5), {**NOTHING, "l2": 40})
    assert less.stages("l2") == [Stage(40, 3e-4)]  # what is done is done
    told = MarketTrainConfig(l2_epochs=9, l2_stages="40:3e-4,5:1e-5")
    assert grown(first, told, {**NOTHING, "l2": 40}) == told


def test_a_finished_phase_goes_on_by_command(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """40, 50, 60 epochs as 2, 3, 4: equal to a training that had these stages from the start."""
    for drawing in ("draw_phase", "draw_losses"):
        monkeypatch.setattr(f"marlab.market.learn.figures.{drawing}", lambda *_: None)
    run, whole = tmp_path / "run", tmp_path / "whole"
    words = ["market", "train", str(data), "--phases", "l2", "--device", "cpu"]
    assert main([*words, "--l2-epochs", "2", "--l2-lr", "3e-4", "--output-dir", str(run)]) == 0
    assert main(["market", "train", str(run), "--resume", "--l2-epochs", "3", "--l2-lr", "1e-4"]) == 0
    assert "l2_bc: 2 epochs are done; stages are 2 at 0.0003, 1 at 0.0001" in capsys.readouterr().out
    assert main(["market", "train", str(run), "--resume", "--l2-epochs", "4", "--l2-lr", "5e-5"]) == 0
    assert main(["market", "train", str(run), "--resume", "--l2-epochs", "4", "--l2-lr", "5e-5"]) == 0  # nothing to do
    stages = "2:3e-4,1:1e-4,1:5e-5"
    assert main([*words, "--l2-stages", stages, "--output-dir", str(whole)]) == 0
    for name in ("l2_bc_epoch4.ckpt.pt", "l2_bc.pt"):
        one, other = (load_checkpoint(folder / "checkpoints" / name).state["model"] for folder in (run, whole))
        assert_same(one, other, name)
    record = json.loads((run / "run.json").read_text())
    assert [(s["epochs"], s["lr"]) for s in record["stages"]] == [(2, 3e-4), (1, 1e-4), (1, 5e-5)]
    assert json.loads((run / "config.json").read_text())["l2_stages"] == "2:0.0003,1:0.0001,1:5e-05"
    assert "5e-05" in (run / "note.md").read_text() if (run / "note.md").exists() else True
    capsys.readouterr()
    more = ["--phases", "l2,l3", "--l3-epochs", "1", "--l3-width", "16"]
    assert main(["market", "train", str(run), "--resume", *more]) == 2  # the width is not what may grow
    assert "l3_width was 128 and is 16" in capsys.readouterr().err
    # a further phase, and then L2 once more: L3 is older now, and the command says so
    small = ["--phases", "l2,l4", "--l4-epochs", "1"]
    assert main(["market", "train", str(run), "--resume", *small]) == 0
    assert (run / "checkpoints" / "l4_distill.pt").exists()
    capsys.readouterr()
    assert main(["market", "train", str(run), "--resume", "--l2-epochs", "5"]) == 0
    assert "l4_distill learnt before l2_bc went on" in capsys.readouterr().out
    assert epochs_done(run / "checkpoints") == {**NOTHING, "l2": 5, "l4": 1}
    assert main(["market", "train", str(run)]) == 2 and "add --resume" in capsys.readouterr().err
    assert main(["market", "train", str(run), "--resume", "--preset", "small"]) == 2


def test_what_is_no_training_run_is_left_to_the_command(data: Path, tmp_path: Path) -> None:
    assert run_of(str(data)) is None and run_of(str(tmp_path / "nothing")) is None
    assert goes_on([], MarketTrainConfig) is None and goes_on(["--resume"], MarketTrainConfig) is None
    assert goes_on([str(data), "--resume"], MarketTrainConfig) is None
    (tmp_path / "run.json").write_text("[" * 100_000)
    assert run_of(str(tmp_path)) is None
    (tmp_path / "run.json").write_text(json.dumps({"config_type": "x:MarketTrainConfig"}))
    with pytest.raises(UserError, match="cannot be resumed"):
        goes_on([str(tmp_path), "--resume"], MarketTrainConfig)
