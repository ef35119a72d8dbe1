"""The manager of a playing agent, and networks that are loaded without torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from marlab.lab.config import to_dict
from marlab.lab.errors import UserError
from marlab.market.networks import forward
from marlab.market.networks.coordinator import GlobalCoordinator
from marlab.market.networks.forward import L3_KIND, L4_KIND
from marlab.market.networks.manager import HorizonManagerPPO
from marlab.market.networks.play import L2StrategicManager, load_for_play
from marlab.market.networks.weights import save_network
from marlab.market.rules import goals, l1
from marlab.market.rules.features import FeatureOptions
from marlab.market.rules.l1 import L1Options
from marlab.market.rules.offers import offer_slots
from marlab.market.samples.extract import extract
from marlab.market.samples.goals import Backfill
from marlab.market.samples.options import SampleOptions
from tests.market.sample_tools import moments, tracked_logs


def test_rules_of_thumb_follow_the_rules_of_l1() -> None:
    days = tracked_logs()[2].days
    np.testing.assert_array_equal(L2StrategicManager().compute(days), goals.heuristic_goal(days))
    economic = L1Options(rules="economic")
    np.testing.assert_array_equal(
        L2StrategicManager(l1=economic).compute(days), goals.economic_goal(days, l1.caps(days, economic))
    )


def test_in_play_the_network_says_what_the_backfill_tells_l3(tmp_path: Path) -> None:
    torch.manual_seed(4)
    options = SampleOptions(features=FeatureOptions(channels=12))
    network = HorizonManagerPPO(d_temporal=12, positive_q=False)
    torch.nn.init.normal_(network.mean.weight, std=2.0)
    save_network(tmp_path / "l2_bc.pt", network, data=to_dict(options))
    manager = L2StrategicManager("neural", model_path=tmp_path)
    assert manager.features == options.features
    log = tracked_logs()[2]
    filled = Backfill("l2", tmp_path, options=options)(extract(log, options)).macro["goal"]
    by_batch = manager.compute(log.days)
    # on the first morning nothing was offered yet; later ones need yesterday's offers
    np.testing.assert_allclose(manager.compute(log.days.take(0)), filled[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(by_batch[0], filled[0], rtol=1e-5, atol=1e-5)
    first = next(moment for moment in moments(log) if log.days.day[moment.day_row] == 1)
    yesterday = first.offers._replace(**{name: v[first.offers.clock < 0] for name, v in first.offers._asdict().items()})
    morning = log.days.take(slice(1, 2))
    goal = manager.compute(morning, offer_slots(morning, yesterday))
    np.testing.assert_allclose(goal, filled[1:2], rtol=1e-5, atol=1e-5)


def test_a_neural_manager_without_a_fitting_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="needs its weights"):
        L2StrategicManager("neural")
    with pytest.raises(UserError, match="There is no L2 model"):
        L2StrategicManager("neural", model_path=tmp_path / "no.pt")
    with pytest.raises(UserError, match="expected heuristic or neural"):
        L2StrategicManager("clever")
    told = {"l1": to_dict(L1Options()), "features": {"horizon": 20}}
    save_network(tmp_path / "l2_bc.pt", HorizonManagerPPO(horizon=20), data=told)
    with pytest.raises(UserError, match="looks 20 days ahead, not 40"):
        L2StrategicManager("neural", model_path=tmp_path)


def test_both_kinds_of_files_hold_the_same_network(tmp_path: Path) -> None:
    save_network(tmp_path / "l4.pt", GlobalCoordinator(), data={"l1": {}, "features": {"horizon": 40}})
    trained = load_for_play(tmp_path / "l4.pt", L4_KIND)
    forward.save(tmp_path / "l4.npz", trained)
    again = load_for_play(tmp_path / "l4.npz", L4_KIND)
    assert (again.kind, again.plan, again.options, again.data) == (
        trained.kind,
        trained.plan,
        trained.options,
        trained.data,
    )
    assert again.arrays.keys() == trained.arrays.keys()
    for name, values in again.arrays.items():
        np.testing.assert_array_equal(values, trained.arrays[name])
    with pytest.raises(UserError, match="of the kind market/l4, expected market/l3"):
        load_for_play(tmp_path / "l4.npz", L3_KIND)
    (tmp_path / "cut.npz").write_bytes((tmp_path / "l4.npz").read_bytes()[:200])
    with pytest.raises(UserError, match="not a network in numpy"):
        load_for_play(tmp_path / "cut.npz", L4_KIND)
