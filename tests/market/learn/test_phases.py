"""A whole training run: its files, stopping and going on, refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from marlab.lab.config import to_dict
from marlab.lab.errors import UserError
from marlab.lab.report.draw import draw
from marlab.lab.report.facts import last_metrics
from marlab.lab.runs.checkpoint import load_checkpoint
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import RunOptions
from marlab.lab.runs.testing import assert_same
from marlab.lab.verdict import texts
from marlab.market.learn.command import JUDGED_BY, MarketTrainConfig
from marlab.market.learn.phases import train
from marlab.market.logs.worldfile import read_world
from marlab.market.networks.manager import HorizonManagerPPO
from marlab.market.networks.weights import save_network
from marlab.market.rules.l1 import L1Options
from marlab.market.samples.dataset import Samples, concatenate
from marlab.market.samples.extract import extract
from marlab.market.samples.options import SampleOptions
from tests.market.learn_cases import labelled_samples
from tests.market.sample_tools import TINY, write_dataset


@pytest.fixture(scope="module")
def samples() -> Samples:
    return labelled_samples()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    logs = [extract(log, SampleOptions()) for log in read_world(TINY).tracked()]
    write_dataset(folder, {"train": concatenate(logs[:2]), "val": logs[2], "test": logs[3]}, to_dict(SampleOptions()))
    return folder


def command(data: Path, **more: object) -> MarketTrainConfig:
    return MarketTrainConfig(
        data=data, phases="l2,l3,awr,l4", l2_epochs=2, l3_epochs=2, awr_epochs=1, l4_epochs=2, l3_width=16,
        l3_layers=1, device="cpu", **more,
    )  # fmt: skip


def test_all_phases_leave_their_files_and_a_stopped_run_continues(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train(command(data), RunOptions(output_dir=tmp_path / "whole"), quiet=True).path
    names = {path.name for path in (whole / "checkpoints").iterdir()}
    for stem, epochs in (("l2_bc", 2), ("l3_bc", 2), ("l3_awr", 1), ("l4_distill", 2)):
        assert {f"{stem}.pt", f"{stem}_best.pt", f"{stem}_epoch{epochs}.pt", f"{stem}_epoch{epochs}.ckpt.pt"} <= names
    figures = {path.name for path in (whole / "figures").glob("*.png")}
    assert {"l2_bc_loss.png", "l2_bc_buckets.png", "l3_bc_operators.png", "l3_bc_residuals.png",
            "l4_distill_weights.png"} <= figures  # fmt: skip
    assert (whole / "eval" / "l3_bc_test.json").exists()
    for phase, judged in JUDGED_BY.items():  # what each phase would be judged by is there
        info = read_run(whole)
        assert judged.key(info.results) is not None and judged.metric in last_metrics(info), phase
    assert info.judged == JUDGED_BY["l4"]

    for drawing in ("draw_phase", "draw_losses"):  # once is enough
        monkeypatch.setattr(f"marlab.market.learn.figures.{drawing}", lambda *_: None)
    found = read_run(whole).results
    assert draw(read_run(whole)).verdict == texts(info.verdict, str(whole)) and read_run(whole).results == found
    assert "of the best predictor that learns nothing" in texts(info.verdict, "")[0]
    parts = tmp_path / "parts"
    stopped = train(
        command(data), RunOptions(output_dir=parts, time_limit=1e-6), quiet=True
    )  # one epoch, then it leaves
    assert stopped.status == "interrupted" and not (parts / "checkpoints" / "l4_distill.pt").exists()
    train(command(data), RunOptions(output_dir=parts, resume=True), quiet=True)
    for name in ("l2_bc.pt", "l3_bc.pt", "l3_awr.pt", "l4_distill.pt"):
        a, b = (load_checkpoint(folder / "checkpoints" / name).state["model"] for folder in (whole, parts))
        assert_same(a, b, name)


def test_bad_input_is_refused_in_one_sentence(data: Path, tmp_path: Path, samples: Samples) -> None:
    def refused(match: str, config: MarketTrainConfig) -> None:
        with pytest.raises(UserError, match=match):
            train(config, RunOptions(output_dir=tmp_path / "refused"), quiet=True)

    refused("not a finished set of samples", replace(command(data), data=tmp_path / "nothing"))
    refused("zeros", replace(command(data), l3_goals="none"))
    write_dataset(tmp_path / "val_only", {"val": samples}, to_dict(SampleOptions()))
    refused("no split 'train'", replace(command(data), data=tmp_path / "val_only"))
    told = to_dict(SampleOptions())
    broken = {**samples.macro, "x_static": samples.macro["x_static"].copy()}
    broken["x_static"][3, 2] = np.nan
    write_dataset(
        tmp_path / "nan", {"train": Samples(samples.sizes, samples.logs, {**samples.tables, "macro": broken})}, told
    )
    (tmp_path / "refused").rename(tmp_path / "first")
    refused("macro.x_static, row 3", replace(command(data), data=tmp_path / "nan"))
    if not torch.cuda.is_available():
        refused("no usable GPU", replace(command(data), device="cuda"))
    for bad, match in (({"phases": "l9"}, "l9"), ({"phases": ""}, "no phase"), ({"phases": "l3"}, "l2-model-path")):
        with pytest.raises(UserError, match=match):
            replace(command(data), **bad)
    save_network(tmp_path / "l2_bc.pt", HorizonManagerPPO(horizon=20))
    (tmp_path / "refused").rename(tmp_path / "second")
    refused("horizon 20", replace(command(data), phases="l3", l2_model_path=tmp_path / "l2_bc.pt"))


def test_layers_begin_with_given_weights(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for drawing in ("draw_phase", "draw_losses"):
        monkeypatch.setattr(f"marlab.market.learn.figures.{drawing}", lambda *_: None)
    given = HorizonManagerPPO()
    save_network(tmp_path / "l2_bc.pt", given, data=to_dict(SampleOptions()))
    config = replace(command(data), phases="l2", l2_epochs=0, l2_start_path=tmp_path)
    run = train(config, RunOptions(output_dir=tmp_path / "run"), quiet=True).path
    assert_same(load_checkpoint(run / "checkpoints" / "l2_bc.pt").state["model"], given.state_dict(), "l2")
    save_network(tmp_path / "l2_bc.pt", given, data=to_dict(SampleOptions(l1=L1Options(reserve=3))))
    with pytest.raises(UserError, match=r"learnt with l1\.reserve = 3"):
        train(config, RunOptions(output_dir=tmp_path / "other"), quiet=True)
    save_network(tmp_path / "l2_bc.pt", given)
    with pytest.raises(UserError, match="do not say with which L1 rules"):
        train(config, RunOptions(output_dir=tmp_path / "third"), quiet=True)


def test_rewards_are_looked_for_before_anything_is_trained(samples: Samples, tmp_path: Path) -> None:
    unknown = {**samples.macro, "reward": np.full(samples.rows("macro"), np.nan, np.float32)}
    tables = {**samples.tables, "macro": unknown}
    told = to_dict(SampleOptions())
    write_dataset(tmp_path / "data", {"train": Samples(samples.sizes, samples.logs, tables)}, told)
    with pytest.raises(UserError, match="has a reward, so there are no advantages"):
        train(command(tmp_path / "data"), RunOptions(output_dir=tmp_path / "run"), quiet=True)
    assert not (tmp_path / "run").exists()
