"""The small network around rule W as play uses it: numpy only, weights in an `.npz` file.

Two or three layers that take the inputs of `rules.around` and give logits for its heads; the prior that makes "as the
rule" the likeliest choice is part of what the file says.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marlab.lab.errors import UserError
from marlab.market.rules import around, beliefs
from marlab.market.rules.beliefs import Observer
from marlab.market.rules.outlook import outlook_size

KIND = "market/around"
HEADER = "header"
OBSERVER = "observer."
"""How the names of the observer's arrays begin."""
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
    observer: Observer | None = None
    """Says who a partner may be; its inputs come after the others."""

    @property
    def beliefs(self) -> int:
        """Inputs about who the partner may be."""
        return outlook_size(self.observer)

    def __call__(self, x: Floats) -> Floats:
        """[..., D] -> [..., C] logits; computed in the precision of the inputs."""
        *hidden, (weight, bias) = self.layers
        for w, b in hidden:
            x = np.maximum(x @ w.T + b, 0)
        return x @ weight.T + bias + np.asarray(around.prior(self.bonus))

    @property
    def inputs(self) -> int:
        """D."""
        return int(self.layers[0][0].shape[1])


def untrained(bonus: float = 3.0) -> AroundNet:
    """A network that has learnt nothing: its greedy play is the rule."""
    return AroundNet(((np.zeros((around.CHOICES, around.INPUTS)), np.zeros(around.CHOICES)),), bonus)


def save(path: Path, net: AroundNet) -> None:
    """Write a network to an `.npz` file."""
    header = {"kind": KIND, "bonus": net.bonus, "rule": dict(net.rule), "inputs": around.INPUTS}
    arrays: dict[str, Any] = {HEADER: np.array(json.dumps(header))}
    for i, (weight, bias) in enumerate(net.layers):
        arrays[f"{i}.weight"], arrays[f"{i}.bias"] = (part.astype(np.float32) for part in (weight, bias))
    if net.observer is not None:
        arrays |= {f"{OBSERVER}{name}": part for name, part in beliefs.to_arrays(net.observer).items()}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    path.write_bytes(buffer.getvalue())


def load(path: Path) -> AroundNet:
    """The network of an `.npz` file; a file that does not hold one is refused."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            header = json.loads(str(file[HEADER]))
            count = sum(name.endswith(".weight") for name in file.files)
            layers = tuple((file[f"{i}.weight"], file[f"{i}.bias"]) for i in range(count))
            own = {name.removeprefix(OBSERVER): file[name] for name in file.files if name.startswith(OBSERVER)}
        if header["kind"] != KIND:
            raise ValueError(f"it is of the kind {header['kind']}")
        if header["inputs"] != around.INPUTS:
            raise ValueError(f"it learnt with {header['inputs']} inputs, today there are {around.INPUTS}")
        observer = beliefs.from_arrays(own, str(path)) if own else None
        net = AroundNet(layers, float(header["bonus"]), dict(header["rule"]), observer)
        _check(net)
    except (OSError, EOFError, KeyError, TypeError, ValueError, IndexError, zipfile.BadZipFile) as error:
        raise UserError(f"The file {path} does not hold a network around the rule: {error}.") from None
    return net


def _check(net: AroundNet) -> None:
    """Raise ValueError where layers do not fit each other, the inputs or the heads."""
    width = around.INPUTS + net.beliefs
    if not net.layers or not math.isfinite(net.bonus):
        raise ValueError("it has no layers or no bonus")
    for weight, bias in net.layers:
        if weight.ndim != 2 or weight.shape[1] != width or bias.shape != weight.shape[:1] or len(bias) > MOST:
            raise ValueError("its layers do not fit each other")
        if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
            raise ValueError("a weight is not a finite number")
        width = len(bias)
    if width != around.CHOICES:
        raise ValueError(f"it gives {width} logits, expected {around.CHOICES}")
