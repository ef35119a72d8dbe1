"""Fitting an observer: shares that are known come out, and a fit that was stopped goes on to the bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from marlab.lab.runs.testing import assert_resume_equal
from marlab.market.beliefs.fit import Fit
from marlab.market.beliefs.watch import Samples
from marlab.market.rules import beliefs
from marlab.market.rules.beliefs import CONTEXT, HEADS


def two_types(count: int = 4000) -> Samples:
    """Type 0 accepts in 3 of 4 cases, type 1 in 1 of 4; otherwise they leave. Contexts tell nothing."""
    draw = torch.Generator().manual_seed(1)
    kind = torch.randint(2, (count,), generator=draw)
    accepts = torch.rand(count, generator=draw) < torch.where(kind == 0, 0.75, 0.25)
    chosen = torch.zeros((count, len(HEADS)), dtype=torch.uint8)
    chosen[:, 0] = torch.where(accepts, 0, 2)
    context = torch.zeros((count, CONTEXT)).half()
    return Samples(context, chosen, torch.zeros(count, dtype=torch.bool), kind.to(torch.uint8))


def a_fit(units: int = 8) -> Fit:
    samples = two_types()
    return Fit(
        samples, samples, ("a", "b"), width=8, units=units, steps=10, batch=512, lr=0.03, seed=0,
        device=torch.device("cpu"),
    )  # fmt: skip


def test_shares_of_answers_are_learnt_by_type_and_by_the_stranger_together() -> None:
    fit = a_fit()
    first = fit.checked()[0]
    while fit.step < fit.total:
        told = fit.iterate()
    assert told["validation/own"] < first and told["validation/own"] < told["validation/stranger"]
    logits = beliefs.logits(fit.observer(), np.zeros((1, CONTEXT)))
    shares = np.exp(beliefs.log_shares(logits[0, :, :3]))
    np.testing.assert_allclose(shares[:, 0], [0.75, 0.25, 0.5], atol=0.05)


def test_a_fit_goes_on_where_it_stopped(tmp_path: Path) -> None:
    assert_resume_equal(lambda: a_fit(4), first=2, second=2, folder=tmp_path)
