"""The small network around rule W as play uses it: numpy only, weights in an `.npz` file.

Two or three layers that take the inputs of `rules.around` and give logits for its heads; the prior that makes "as the
rule" the likeliest choice is part of what the file says.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marlab.lab.runs.arrays import read_npz
from marlab.lab.runs.files import replacing, trusting
from marlab.market.rules import around
from marlab.market.rules.around import BOUND, Freedom

KIND = "market/around"
HEADER = "header"
ORDER = "order."
"""How the names of the layers begin that order threads."""
MOST = 4096
"""Widest layer that is believed."""
Floats = NDArray[Any]


@dataclass(frozen=True)
class AroundNet:
    """Weights of the layers, and what they were made for."""

    layers: tuple[tuple[Floats, Floats], ...]
    """Weight [out, in] and bias [out] of each."""
    bonus: float = 3.0
    """Logit of doing as the rule does."""
    rule: Mapping[str, Any] = field(default_factory=dict)
    """Options of the rule that it stands around, as `RuleOptions` takes them."""
    order: tuple[tuple[Floats, Floats], ...] = ()
    """Layers that score threads for L4's order; none: the rule's order."""
    freedom: Freedom = BOUND
    """What it may do beside the usual."""

    def __call__(self, x: Floats) -> Floats:
        """[..., D] -> [..., C] logits; computed in the precision of the inputs."""
        return _passed(self.layers, x) + np.asarray(around.prior(self.bonus))

    def scores(self, x: Floats) -> Floats:
        """[..., D] -> [...] for the order of threads."""
        found: Floats = _passed(self.order, x)[..., 0]
        return found

    @property
    def inputs(self) -> int:
        """D."""
        return int(self.layers[0][0].shape[1])


def _passed(layers: tuple[tuple[Floats, Floats], ...], x: Floats) -> Floats:
    *hidden, (weight, bias) = layers
    for w, b in hidden:
        x = np.maximum(x @ w.T + b, 0)
    return x @ weight.T + bias


def untrained(bonus: float = 3.0) -> AroundNet:
    """A network that has learnt nothing: its greedy play is the rule."""
    return AroundNet(((np.zeros((around.CHOICES, around.INPUTS)), np.zeros(around.CHOICES)),), bonus)


def save(path: Path, net: AroundNet) -> None:
    """Write a network to an `.npz` file."""
    header = {"kind": KIND, "bonus": net.bonus, "rule": dict(net.rule), "inputs": around.INPUTS}
    header |= {"freedom": net.freedom._asdict()}
    arrays: dict[str, Any] = {HEADER: np.array(json.dumps(header))}
    for prefix, layers in (("", net.layers), (ORDER, net.order)):
        for i, (weight, bias) in enumerate(layers):
            arrays[f"{prefix}{i}.weight"], arrays[f"{prefix}{i}.bias"] = (
                part.astype(np.float32) for part in (weight, bias)
            )
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)


def load(path: Path) -> AroundNet:
    """The network of an `.npz` file; a file that does not hold one is refused."""
    file = read_npz(path, "a network around the rule")
    with trusting(f"The file {path} does not hold a network around the rule"):
        header = json.loads(str(file[HEADER]))
        layers, order = (_layers(file, prefix) for prefix in ("", ORDER))
        if len(file) != 1 + 2 * (len(layers) + len(order)):
            raise ValueError("it holds arrays of another kind of network")
        if header["kind"] != KIND:
            raise ValueError(f"it is of the kind {header['kind']}")
        if header["inputs"] != around.INPUTS:
            raise ValueError(f"it learnt with {header['inputs']} inputs, today there are {around.INPUTS}")
        freedom = Freedom(**{name: bool(value) for name, value in dict(header.get("freedom", {})).items()})
        net = AroundNet(layers, float(header["bonus"]), dict(header["rule"]), order, freedom)
        _check(net)
    return net


def _layers(file: Mapping[str, Floats], prefix: str) -> tuple[tuple[Floats, Floats], ...]:
    """Weights and biases whose names begin so and go on with a number."""
    count = sum(re.fullmatch(re.escape(prefix) + r"\d+\.weight", name) is not None for name in file)
    return tuple((file[f"{prefix}{i}.weight"], file[f"{prefix}{i}.bias"]) for i in range(count))


def _check(net: AroundNet) -> None:
    """Raise ValueError where layers do not fit each other, the inputs or the heads."""
    if not net.layers or not math.isfinite(net.bonus):
        raise ValueError("it has no layers or no bonus")
    _check_layers(net.layers, around.INPUTS, around.CHOICES)
    if net.order:
        _check_layers(net.order, around.INPUTS, 1)


def _check_layers(layers: tuple[tuple[Floats, Floats], ...], width: int, outputs: int) -> None:
    for weight, bias in layers:
        if weight.ndim != 2 or weight.shape[1] != width or bias.shape != weight.shape[:1] or len(bias) > MOST:
            raise ValueError("its layers do not fit each other")
        if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
            raise ValueError("a weight is not a finite number")
        width = len(bias)
    if width != outputs:
        raise ValueError(f"it gives {width} numbers, expected {outputs}")
