"""Training under the guide's names, call by call."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from marlab.lab.config import to_dict
from marlab.lab.errors import UserError
from marlab.lab.runs.testing import assert_same
from marlab.market.agent.layers import load_layers
from marlab.market.agent.settings import AgentSettings
from marlab.market.guide import (
    FeatureOptions,
    GlobalCoordinator,
    HorizonManagerPPO,
    HRLXFTrainer,
    L1Options,
    SampleOptions,
    TemporalDecisionTransformer,
    TrainConfig,
    add_options,
    load_l4_distill_data,
    load_model,
    load_samples,
    load_tournament_data,
    save_model,
    save_samples,
    train_l2_bc,
    train_l3_awr,
)
from marlab.market.guide.trainer import _returns_of
from marlab.market.learn.advantage import Expectation, scaled_returns
from marlab.market.learn.tables import DecisionTable
from marlab.market.logs.tracker import write_tracker
from marlab.market.logs.worldfile import read_world, write_world
from marlab.market.networks.weights import L2_KIND, L3_KIND, load_network
from marlab.market.rules.partners import EXTRA_SIZE, PARTNER_SIZE
from marlab.market.samples.origin import UNKNOWN
from tests.market.online_cases import tiny
from tests.market.sample_tools import TINY


@pytest.mark.parametrize("records", [False, True], ids=["lists", "records"])
def test_the_guides_training_sequence(tmp_path: Path, records: bool) -> None:
    """§ training of the guide: L2, backfill, L3, L4, saving and continuing, with few epochs."""
    (tmp_path / "worlds").mkdir()
    (tmp_path / "worlds" / "tiny.parquet").write_bytes(TINY.read_bytes())
    folder, out = str(tmp_path), str(tmp_path / "out")
    small = {"l3_batch_size": 64, "device": "cpu"}

    def given(items):  # the guide's lists, or plain lists of the same records
        return list(items) if records else items

    macro, _ = load_tournament_data(folder, agent_name="Pe", num_workers=1, goal_backfill="none")
    cfg = TrainConfig(l2_epochs=2, l3_epochs=1, output_dir=out, horizon=40, **small)
    l2 = HorizonManagerPPO(horizon=cfg.horizon)
    l3 = TemporalDecisionTransformer(horizon=cfg.horizon, d_model=16, n_layers=1)
    trainer = HRLXFTrainer(l2, l3, None, cfg)
    trainer.train_phase0_bc(given(macro), [])
    save_model(l2, out, "l2_bc.pt")
    _, micro = load_tournament_data(
        folder, agent_name="Pe", num_workers=1, goal_backfill="l2", l2_model_path=f"{out}/l2_bc.pt"
    )
    trainer.train_phase0_bc([], given(micro))
    save_model(l3, out, "l3_bc.pt")
    trainer.train_phase1_awr(given(micro))
    drawn = load_l4_distill_data(
        folder, agent_name="Pe", goal_source="l2", l2_model_path=f"{out}/l2_bc.pt", num_workers=1
    )
    l4 = GlobalCoordinator(horizon=cfg.horizon, thread_feat_dim=24, global_feat_dim=30)
    HRLXFTrainer(None, None, l4, TrainConfig(output_dir=out, horizon=40, l4_epochs=1, device="cpu")).train_l4_distill(
        given(drawn)
    )
    save_model(l4, out, "l4_distill.pt")
    again = HorizonManagerPPO(horizon=40)
    load_model(again, f"{out}/l2_bc.pt")
    assert_same(again.state_dict(), l2.state_dict(), "l2")
    more = replace(cfg, l2_epochs=3, l2_resume_path=f"{out}/l2_bc_epoch2.ckpt.pt")
    history = HRLXFTrainer(again, None, None, more).train_phase0_bc(given(macro), [])["l2"]
    assert [row["l2_bc/epoch"] for row in history] == [3.0]  # epochs are the total
    with pytest.raises(UserError):
        HRLXFTrainer(again, None, None, replace(more, l2_resume_path=f"{out}/none.ckpt.pt")).train_phase0_bc(macro, [])
    assert {p.name for p in trainer.save_all("final")} == {"l2_final.pt", "l3_final.pt"}


def load(folder: Path, **more: Any) -> tuple[Any, Any]:
    (folder / "worlds").mkdir(exist_ok=True)
    (folder / "worlds" / "tiny.parquet").write_bytes(TINY.read_bytes())
    return load_tournament_data(folder, agent_name="Pe", num_workers=1, goal_backfill="v2", **more)


def routes(folder: Path, micro: Any) -> dict[str, Any]:
    """The same decisions in the three ways in which they are handed around."""
    save_samples([], micro, folder / "saved")
    return {"loader": micro, "records": list(micro), "files": load_samples(folder / "saved")[1]}


def test_the_first_return_is_the_same_in_all_three_routes(tmp_path: Path) -> None:
    _, micro = load(tmp_path)
    found = {}
    for name, given in routes(tmp_path, micro).items():
        days, rows = _returns_of(given)
        found[name] = scaled_returns(days, 0.98)[rows], Expectation(days, 0.98, 0).advantages(days)[rows]
    first = found["loader"][0][0]
    assert all(values[0][0] == first for values in found.values()) and np.isfinite(first)
    for name in ("records", "files"):
        np.testing.assert_array_equal(found[name][0], found["loader"][0])
        np.testing.assert_array_equal(found[name][1], found["loader"][1])
    once = days_by_hand(micro)  # records without an origin: one reward for each day, not one for each decision
    assert len(once[0]["reward"]) == len({(s.file_id, s.day) for s in micro})


def days_by_hand(micro: Any) -> Any:
    return _returns_of([replace(s, origin=UNKNOWN, day_row=-1) for s in micro])


def test_awr_learns_the_same_from_all_three_routes(tmp_path: Path) -> None:
    _, micro = load(tmp_path)
    weights = {}
    for name, given in routes(tmp_path, micro).items():
        torch.manual_seed(0)
        l3 = TemporalDecisionTransformer(d_model=16, n_layers=1)
        cfg = TrainConfig(awr_epochs=1, l3_batch_size=64, output_dir=tmp_path / name, device="cpu")
        train_l3_awr(l3, given, cfg)
        weights[name] = l3.state_dict()
        assert l3.data["l1"] == to_dict(L1Options()) and l3.data["features"] == to_dict(FeatureOptions())
        assert load_network(tmp_path / name / "l3_awr.pt", L3_KIND).data == l3.data
    assert_same(weights["records"], weights["loader"], "records")
    assert_same(weights["files"], weights["loader"], "files")


def test_a_log_without_a_final_balance_trains_awr_with_all_but_its_last_day(tmp_path: Path) -> None:
    for log in read_world(TINY).tracked():
        path = write_tracker(log, tmp_path / "tracker_logs")
        told = json.loads(path.read_text())
        told["stats"].pop("final_balance")
        path.write_text(json.dumps(told))
    _, micro = load_tournament_data(tmp_path, agent_name="all", num_workers=1, goal_backfill="v2")
    days, rows = _returns_of(micro)
    last = days["day"] == 13
    assert np.isnan(days["reward"]).tolist() == last.tolist()
    advantage = Expectation(days, 0.98, 0).advantages(days)[rows]
    decided = np.array([s.day for s in micro])
    assert np.isnan(advantage).tolist() == (decided == 13).tolist() and (decided == 13).any()
    l3 = TemporalDecisionTransformer(d_model=16, n_layers=1)
    cfg = TrainConfig(awr_epochs=1, l3_batch_size=64, output_dir=tmp_path / "out", device="cpu")
    history = train_l3_awr(l3, micro, cfg)
    assert np.isfinite(history[0]["l3_awr/train/loss"])
    table = DecisionTable(micro.samples, torch.device("cpu"), advantage=advantage)
    assert table.rows == (decided != 13).sum()


def test_records_that_do_not_say_how_they_were_made_are_refused_until_it_is_said(tmp_path: Path) -> None:
    macro, _ = load(tmp_path)
    bare = [replace(s, origin=UNKNOWN) for s in macro]
    cfg = TrainConfig(l2_epochs=1, output_dir=tmp_path / "out", device="cpu")
    with pytest.raises(UserError, match=r"do not say with which L1 rules.*TrainConfig\(sample_options"):
        train_l2_bc(HorizonManagerPPO(), bare, cfg)
    assert not (tmp_path / "out").exists()
    l2 = HorizonManagerPPO()
    train_l2_bc(l2, bare, replace(cfg, sample_options=SampleOptions(l1=L1Options(reserve=5))))
    assert l2.data["l1"]["reserve"] == 5
    with pytest.raises(UserError, match=r"learnt with l1\.reserve = 5\.0, the samples have 1000\.0"):
        train_l2_bc(l2, macro, cfg)  # goes on with weights of other samples
    with pytest.raises(UserError, match=r"l1\.reserve is 1000\.0 and 5\."):
        train_l2_bc(HorizonManagerPPO(), macro, replace(cfg, sample_options=SampleOptions(l1=L1Options(reserve=5))))
    more = SampleOptions(features=FeatureOptions(extra=True))
    with pytest.raises(UserError, match="d_static 12, but the features they name have 67"):
        train_l2_bc(HorizonManagerPPO(), load(tmp_path, options=more)[0], cfg)


def test_further_features_travel_with_records_and_files(tmp_path: Path) -> None:
    options = SampleOptions(features=FeatureOptions(extra=True))
    macro, micro = load(tmp_path, options=options)
    save_samples(macro, micro, tmp_path / "saved")
    cfg = TrainConfig(l2_epochs=1, l3_epochs=1, l3_batch_size=64, device="cpu", output_dir=tmp_path / "out")
    found = []
    for days, decisions in ((macro, micro), (list(macro), list(micro)), load_samples(tmp_path / "saved")):
        torch.manual_seed(0)
        l2 = HorizonManagerPPO(d_static=12 + EXTRA_SIZE)
        l3 = TemporalDecisionTransformer(d_model=16, n_layers=1, d_partner=PARTNER_SIZE)
        histories = HRLXFTrainer(l2, l3, None, cfg).train_phase0_bc(days, decisions)
        found.append((histories["l2"][0]["l2_bc/train/loss"], histories["l3"][0]["l3_bc/train/loss"]))
    assert found[0] == found[1] == found[2]


def test_what_is_wrong_with_l3_is_found_before_l2_is_trained(tmp_path: Path) -> None:
    macro, micro = load(tmp_path)
    l3 = TemporalDecisionTransformer(d_model=16, n_layers=1)
    cfg = TrainConfig(l2_epochs=1, output_dir=tmp_path / "out", device="cpu", l3_bc_resume_path=tmp_path / "none.pt")
    with pytest.raises(UserError, match="does not exist"):
        HRLXFTrainer(HorizonManagerPPO(), l3, None, cfg).train_phase0_bc(macro, micro)
    assert not (tmp_path / "out").exists()


def test_options_can_be_added_to_weights_that_lack_them(tmp_path: Path) -> None:
    path = tmp_path / "l2_bc.pt"
    save_model(HorizonManagerPPO(), tmp_path, "l2_bc.pt")
    with pytest.raises(UserError, match="add_options"):
        load_tournament_data(TINY, "Pe", num_workers=1, goal_backfill="l2", l2_model_path=path)
    with pytest.raises(UserError, match="d_static 12, but the features they name have 67"):
        add_options(path, SampleOptions(features=FeatureOptions(extra=True)))
    add_options(path, SampleOptions())
    with pytest.raises(UserError, match="says already"):
        add_options(path, SampleOptions())
    _, micro = load_tournament_data(TINY, "Pe", num_workers=1, goal_backfill="l2", l2_model_path=path)
    assert len(micro)


def test_with_days_to_judge_by_the_best_epoch_is_kept(tmp_path: Path) -> None:
    macro, _ = load(tmp_path)
    l2 = HorizonManagerPPO()
    cfg = TrainConfig(l2_epochs=3, l2_lr=0.3, output_dir=tmp_path / "out", device="cpu")  # far too large a step
    history = train_l2_bc(l2, macro[:20], cfg, val=macro[20:])
    losses = [row["l2_bc/val/loss"] for row in history]
    best = load_network(tmp_path / "out" / f"l2_bc_epoch{int(np.argmin(losses)) + 1}.pt", L2_KIND)
    assert_same(l2.state_dict(), best.state_dict(), "best")


def test_what_was_trained_by_the_guides_sequence_is_what_plays(tmp_path: Path) -> None:
    """L1's baseline and every feature that L3 and L4 see in play are those of the samples, to 1e-6."""
    pytest.importorskip("scml")
    from marlab.market.simulator.record import record_world
    from marlab.market.simulator.worlds import WorldSpec
    from tests.market import agent_variants

    folder, out = tmp_path / "logs", tmp_path / "out"
    folder.mkdir()
    macro, _ = load(folder)
    cfg = TrainConfig(l2_epochs=1, l3_epochs=1, l4_epochs=1, output_dir=out, horizon=40, device="cpu", l3_batch_size=64)
    l2, l3 = HorizonManagerPPO(horizon=40), TemporalDecisionTransformer(horizon=40, d_model=16, n_layers=1)
    trainer = HRLXFTrainer(l2, l3, None, cfg)
    trainer.train_phase0_bc(macro, [])
    save_model(l2, out, "l2_bc.pt")
    told = {"agent_name": "Pe", "num_workers": 1, "l2_model_path": out / "l2_bc.pt"}
    _, micro = load_tournament_data(folder, goal_backfill="l2", **told)
    trainer.train_phase0_bc([], micro)
    save_model(l3, out, "l3_bc.pt")
    l4 = GlobalCoordinator(horizon=40)
    HRLXFTrainer(None, None, l4, cfg).train_l4_distill(load_l4_distill_data(folder, goal_source="l2", **told))
    save_model(l4, out, "l4_distill.pt")

    watched = agent_variants.Watched.LitaAgentHRL
    watched.given = {f"{layer}_model_path": out for layer in ("l2", "l3", "l4")}
    watched.seats.clear()
    name = f"{agent_variants.__name__}:Watched.LitaAgentHRL"
    agents = (name, "GreedyStdAgent", name, "GreedyStdAgent", name, "SyncRandomStdAgent")
    spec = WorldSpec("contract", 3, 6, 8, (0, 0, 1, 1, 2, 2), agents, tuple(agent == name for agent in agents))
    played = tmp_path / "played"
    played.mkdir()
    write_world(played / "w.parquet", record_world(spec))
    told |= {"agent_name": "LitaAgentHRL"}
    macro, micro = load_tournament_data(played, goal_backfill="l2", **told)
    samples, log = micro.samples, {one.agent_id: one for one in read_world(played / "w.parquet").tracked()}
    compared = 0
    for agent in watched.seats.values():
        assert agent.layers.l1 == L1Options() and agent.layers.features == FeatureOptions()
        table, mine = log[str(agent.id)].negotiations, log[str(agent.id)]
        number = next(i for i, info in enumerate(samples.logs) if info.agent == str(agent.id))
        for row in np.flatnonzero(samples.macro["log"][samples.micro["macro"]] == number):
            n, day = samples.micro["negotiation"][row], samples.micro["macro"][row]
            partner = mine.names[table["buyer"][n] if table["seller"][n] == mine.index else table["seller"][n]]
            key = int(table["day"][n]), partner, int(samples.micro["round"][row]), bool(samples.micro["aux"][row][5])
            for what, value in agent.asked[key].items():
                source = samples.macro if what in ("x_static", "goal") else samples.micro
                made = source[what][day if source is samples.macro else row]
                np.testing.assert_allclose(made, value, rtol=1e-6, atol=1e-6, err_msg=f"{key} {what}")
            compared += 1
    assert compared > 30


def test_phase_2_learns_by_trial_and_leaves_a_network_that_plays(tmp_path: Path) -> None:
    trainer = HRLXFTrainer(None, None, None, TrainConfig(output_dir=tmp_path, device="cpu"))
    history = trainer.train_phase2_ppo(tiny(generations=1))
    assert history["ppo"][0]["ppo/samples"] > 0
    assert load_layers(AgentSettings(mode="learned", weights=tmp_path)).l1.rules == "economic"
