"""The small network around the rule in numpy, and its file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from marlab.lab.errors import UserError
from marlab.market.networks import around as network
from marlab.market.rules import around


def test_untrained_it_gives_the_prior() -> None:
    logits = network.untrained(2.5)(np.random.default_rng(0).normal(size=(2, 3, around.INPUTS)))
    assert logits.shape == (2, 3, around.CHOICES)
    assert (logits == around.prior(2.5)).all()
    assert logits[0, 0, 0] == 2.5 and logits[0, 0, around.OP_LEAVE] == -2.5


def test_a_file_gives_the_network_back(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    layers = tuple(
        (draw.normal(size=(out, into)).astype(np.float32), draw.normal(size=out).astype(np.float32))
        for into, out in ((around.INPUTS, 8), (8, around.CHOICES))
    )
    net = network.AroundNet(layers, 1.5, {"hold": 3}, freedom=around.Freedom(leave=True))
    network.save(tmp_path / "a.npz", net)
    again = network.load(tmp_path / "a.npz")
    x = draw.normal(size=(5, net.inputs))
    assert np.array_equal(net(x), again(x))
    assert (again.bonus, again.rule) == (1.5, {"hold": 3})
    assert again.freedom == around.Freedom(leave=True)


@pytest.mark.parametrize("wrong", ["inputs", "kind", "shape", "nan", "freedom", "more"])
def test_a_file_that_does_not_fit_is_refused(tmp_path: Path, wrong: str) -> None:
    path = tmp_path / "a.npz"
    network.save(path, network.untrained())
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(str(arrays["header"]))
    if wrong in header:
        header[wrong] = 7
        arrays["header"] = np.array(json.dumps(header))
    if wrong == "shape":
        arrays["0.weight"] = arrays["0.weight"][:, 1:]
    if wrong == "nan":
        arrays["0.bias"][0] = np.nan
    if wrong == "more":
        arrays["middle.0.weight"] = arrays["0.weight"]
    np.savez(path, **arrays)
    with pytest.raises(UserError, match="does not hold a network around the rule"):
        network.load(path)
