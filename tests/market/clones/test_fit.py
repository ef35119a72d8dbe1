"""Fitting: frequencies come back, what counts is counted, and a fit goes on where it stopped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from marlab.lab.runs.testing import assert_resume_equal
from marlab.market.clones.examples import ASK, FACTS, LEAVE, TAKE, Examples, examples
from marlab.market.clones.fit import PARTS, Fit, likelihood, losses
from marlab.market.clones.measure import predicted
from marlab.market.vector.clones import network
from marlab.market.vector.clones.inputs import ALL, ROW
from tests.market.clone_cases import named_worlds

CPU = torch.device("cpu")


def scripted(count: int, seed: int) -> Examples:
    """An agent that leaves in every second case from round 5 on, accepts a third of all offers, and asks for 3 or 7
    units (7 for later days only) at the lowest price."""
    draw = np.random.default_rng(seed)
    facts = {name: np.zeros(count, np.int64) for name in FACTS}
    facts |= {"lots": np.full(count, 30), "days": np.full(count, 11), "round": draw.integers(0, 10, count)}
    facts["on_table"] = draw.integers(0, 2, count)
    leaves = (facts["round"] >= 5) & (draw.random(count) < 0.5)
    takes = (facts["on_table"] == 1) & (draw.random(count) < 1 / 3)
    facts["op"] = np.where(leaves, LEAVE, np.where(takes, TAKE, ASK))
    asks = facts["op"] == ASK
    facts["day"] = np.where(draw.random(count) < 0.5, 2, 0) * asks
    facts["lot"] = np.where(facts["day"] == 2, 6, 2) * asks
    inputs = draw.normal(0, 0.1, (count, ALL)).astype(np.float16)
    inputs[:, ROW] = facts["on_table"]
    return Examples(inputs, np.stack([facts[name] for name in FACTS], 1).astype(np.int16))


def make(data: list[Examples], units: int = 12, steps: int = 25) -> Fit:
    torch.set_num_threads(1)
    return Fit(data, data, hidden=16, units=units, steps=steps, batch=256, lr=5e-3, decay=0.01, seed=0, device=CPU)


def test_a_scripted_agents_frequencies_come_back() -> None:
    fit = make([scripted(4000, 0)], units=6)
    while fit.step < fit.total:
        fit.iterate()
    fresh = scripted(2000, 1)
    found, rounds = predicted(fit.best, fresh), fresh.column("round")
    assert found.leave[rounds < 5].mean() == pytest.approx(0.0, abs=0.03)
    assert found.leave[rounds >= 5].mean() == pytest.approx(0.5, abs=0.05)
    assert found.accept[fresh.column("on_table") == 1].mean() == pytest.approx(1 / 3, abs=0.05)
    asks, later = fresh.column("op") == ASK, fresh.column("day") == 2
    assert found.day[asks][:, [0, 2]].mean(0) == pytest.approx([0.5, 0.5], abs=0.05)
    assert found.lot[asks & later][:, 6].mean() > 0.95 and found.lot[asks & ~later][:, 2].mean() > 0.95
    assert found.price[asks][:, 0].mean() > 0.95


def test_a_fit_begins_with_given_clones_and_keeps_them_until_others_are_better() -> None:
    first = make([scripted(2000, 0)], units=3)
    while first.step < first.total:
        first.iterate()
    known = losses(first.best, [scripted(500, 2)], CPU)[0, -1]
    again = Fit(
        [scripted(20, 3)], [scripted(500, 2)], hidden=16, units=2, steps=20, batch=64, lr=0.05, decay=0.0, seed=1,
        device=CPU, start=first.best,
    )  # fmt: skip
    assert float(again.lowest[0]) == pytest.approx(known)
    again.iterate()  # twenty decisions and a high rate: worse than before
    assert float(losses(again.weights, [scripted(500, 2)], CPU)[0, -1]) > known + 0.1
    for name, values in again.best.items():
        assert torch.equal(values, first.best[name])


def test_sync_randoms_frequencies_come_back() -> None:
    data = examples(list(named_worlds()[:1]), ["AS0", "PenguinAgent", "SyncRandomStdAgent"])  # SyncRandom in all seats
    whole = Examples(*(np.concatenate([getattr(e, part) for e in data.values()]) for part in ("inputs", "facts")))
    fit = make([whole], units=4)
    while fit.step < fit.total:
        fit.iterate()
    found, op = predicted(fit.best, whole), whole.column("op")
    assert found.leave.mean() == pytest.approx((op == LEAVE).mean(), abs=0.03)
    assert ((1 - found.leave) * found.accept).mean() == pytest.approx((op == TAKE).mean(), abs=0.03)
    asks = op == ASK
    assert found.lot[asks] @ np.arange(30) @ np.ones(asks.sum()) / asks.sum() == pytest.approx(
        whole.column("lot")[asks].mean(), abs=0.5
    )
    assert found.day[asks][:, 0].mean() == pytest.approx((whole.column("day")[asks] == 0).mean(), abs=0.05)


def test_only_what_was_decided_counts() -> None:
    data = scripted(50, 0)
    weights = network.new_weights(1, 8, torch.Generator().manual_seed(0))
    found = likelihood(weights, torch.as_tensor(data.inputs)[None].float(), torch.as_tensor(data.facts)[None])
    op = data.column("op")
    counts = dict(zip(PARTS, found.counts[0].T.numpy()))
    assert counts["leave"].all() and (counts["day"] == (op == ASK)).all()
    assert (counts["accept"] == ((op != LEAVE) & (data.column("on_table") == 1))).all()
    means = losses(weights, [data], CPU)[0]
    whole = float((found.loss * found.counts).sum()) / len(data)
    assert means[-1] == pytest.approx(whole, rel=1e-5) and len(means) == len(PARTS) + 1


def test_the_best_weights_of_each_expert_are_kept() -> None:
    fit = make([scripted(500, 0), scripted(500, 1)], units=3, steps=5)
    seen = []
    while fit.step < fit.total:
        fit.iterate()
        seen.append(losses(fit.weights, fit._checked, CPU)[:, -1])
    assert np.allclose(fit.lowest.numpy(), np.min(seen, 0))
    assert np.allclose(losses(fit.best, fit._checked, CPU)[:, -1], np.min(seen, 0))


def test_a_fit_goes_on_where_it_stopped(tmp_path: Path) -> None:
    data = [scripted(200, 0)]
    assert_resume_equal(lambda: make(data, units=4, steps=3), 2, 2, tmp_path)
