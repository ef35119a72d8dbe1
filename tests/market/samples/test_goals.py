"""Goals filled in afterwards: which, for which day, and the same in any batch."""

import numpy as np
import pytest
import torch

from marlab.lab.config import to_dict
from marlab.lab.errors import UserError
from marlab.market.networks.manager import HorizonManagerPPO
from marlab.market.networks.weights import load_manager, save_network
from marlab.market.rules import goals
from marlab.market.rules.features import FeatureOptions
from marlab.market.samples.dataset import concatenate
from marlab.market.samples.extract import extract
from marlab.market.samples.goals import Backfill, predict_goals
from marlab.market.samples.options import SampleOptions
from tests.market.sample_tools import tracked_logs

OPTIONS = SampleOptions()
LOGS = [extract(log, OPTIONS) for log in tracked_logs()]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """An untrained L2 whose goals are about as large as real ones, some below zero."""
    torch.manual_seed(3)
    network = HorizonManagerPPO(positive_q=False)
    torch.nn.init.normal_(network.mean.weight, std=2.0)
    path = tmp_path_factory.mktemp("l2") / "l2_bc.pt"
    save_network(path, network, data=to_dict(OPTIONS))
    return path


def test_none_leaves_zeros_and_v2_tells_the_label():
    samples = concatenate(LOGS)
    assert (Backfill("none")(samples).goals() == 0).all()
    filled = Backfill("v2")(samples)
    np.testing.assert_array_equal(filled.goals(), samples.macro["label"][samples.micro["macro"]])
    assert (samples.macro["goal"] == 0).all()  # the given samples are left as they were


def test_l2_tells_the_networks_answer_for_that_log_and_day(model):
    samples = concatenate(LOGS)
    filled = Backfill("l2", model, options=OPTIONS)(samples)
    network = load_manager(model)
    for row in range(0, samples.rows("macro"), 5):
        inputs = [torch.tensor(samples.macro[name][row : row + 1]) for name in ("x_static", "x_temporal", "x_role")]
        with torch.no_grad():
            mean = network(*inputs)[0][0].numpy()
        allowed = np.where(goals.IS_SELLING, samples.macro["x_role"][row, 1], samples.macro["x_role"][row, 0])
        np.testing.assert_allclose(filled.macro["goal"][row], np.maximum(mean, 0) * allowed, rtol=1e-4, atol=1e-5)
        assert (mean < 0).any()
    of_day = filled.goals()
    assert (of_day >= 0).all() and (of_day > 0).any()
    first, last = samples.micro["macro"][0], samples.micro["macro"][-1]
    assert first != last and (of_day[0] != of_day[-1]).any()
    np.testing.assert_array_equal(of_day, filled.macro["goal"][samples.micro["macro"]])


def test_everything_that_depends_on_goals_is_renewed(model):
    samples = concatenate(LOGS)
    filled = Backfill("l2", model, options=OPTIONS)(samples)
    changed = {name for name in samples.micro if (samples.micro[name] != filled.micro[name]).any()}
    assert changed == {"aux", "thread", "alpha"}
    aux = (samples.micro["aux"] != filled.micro["aux"]).any(0)
    assert aux.tolist() == [False] * 6 + [True]
    thread = (np.abs(samples.micro["thread"] - filled.micro["thread"]) > 1e-6).any(0)
    assert np.flatnonzero(thread).tolist() == [0, 6, 7, 8, 9, 12, 13]


def test_chunks_and_their_order_do_not_matter(model):
    fill = Backfill("l2", model, options=OPTIONS)
    together = fill(concatenate(LOGS))
    one_by_one = concatenate([Backfill("l2", model, batch=1, options=OPTIONS)(samples) for samples in LOGS])
    np.testing.assert_allclose(together.macro["goal"], one_by_one.macro["goal"], rtol=1e-5, atol=1e-5)
    for name in ("aux", "thread", "alpha"):
        np.testing.assert_allclose(together.micro[name], one_by_one.micro[name], rtol=1e-5, atol=1e-5)
    shuffled = fill(concatenate([LOGS[i] for i in (3, 0, 5, 1, 4, 2)]))
    start = {
        i: sum(LOGS[j].rows("micro") for j in (3, 0, 5, 1, 4, 2)[:place]) for place, i in enumerate((3, 0, 5, 1, 4, 2))
    }
    begin = 0
    for i, samples in enumerate(LOGS):
        n = samples.rows("micro")
        here, there = slice(begin, begin + n), slice(start[i], start[i] + n)
        np.testing.assert_allclose(
            together.micro["thread"][here], shuffled.micro["thread"][there], rtol=1e-5, atol=1e-5
        )
        begin += n


def test_a_network_that_gives_no_numbers_is_refused(model):
    network = load_manager(model)
    torch.nn.init.constant_(network.mean.bias, float("nan"))
    with pytest.raises(UserError, match="goals that are not numbers"):
        predict_goals(network, LOGS[0].macro)


def test_extra_features_go_to_the_network_too(tmp_path):
    options = SampleOptions(features=FeatureOptions(extra=True, channels=12))
    samples = extract(tracked_logs()[2], options)
    sizes = options.sizes
    assert samples.macro["extra"].shape[1] == sizes.extra > 0 and samples.micro["partner"].shape[1] == sizes.partner > 0
    network = HorizonManagerPPO(d_static=sizes.static + sizes.extra, d_temporal=12)
    save_network(tmp_path / "l2_bc.pt", network, data=to_dict(options))
    assert (Backfill("l2", tmp_path, options=options)(samples).macro["goal"] > 0).any()


def test_impossible_requests_are_refused_before_any_work(model, tmp_path):
    with pytest.raises(UserError, match="goal_backfill l2 needs the weights"):
        Backfill("l2")
    with pytest.raises(UserError, match="expected none, v2 or l2"):
        Backfill("l3")
    with pytest.raises(UserError, match="There is no L2 model at"):
        Backfill("l2", tmp_path / "nothing.pt")
    with pytest.raises(UserError, match="was made for d_temporal 10, the samples have 12"):
        Backfill("l2", model, options=SampleOptions(features=FeatureOptions(channels=12))).network()
    other = SampleOptions(features=FeatureOptions(offers="none"))
    with pytest.raises(UserError, match=r"learnt with features\.offers = 'prev_day', the samples have 'none'"):
        Backfill("l2", model, options=other).network()
