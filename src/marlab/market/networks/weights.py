"""Weights of the three networks on disk: each file says what network it holds and what samples it learnt from.

The second part is a contract: play, backfill and further training use the very L1 rules, features and horizon that the
network learnt with, or refuse. A stranger's file is believed nothing that its own tensors do not confirm.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from marlab.lab.config import diff, from_dict, to_dict
from marlab.lab.errors import UserError
from marlab.lab.runs.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from marlab.market.networks.coordinator import GlobalCoordinator
from marlab.market.networks.executor import L3PolicyModel, TemporalDecisionTransformer
from marlab.market.networks.forward import L2_KIND, L3_KIND, L4_KIND, Plain
from marlab.market.networks.learnt import LearntWith, learnt_with
from marlab.market.networks.manager import HorizonManagerPPO
from marlab.market.rules.features import FeatureOptions
from marlab.market.rules.l1 import L1Options

LAYERS = {L2_KIND: "L2", L3_KIND: "L3", L4_KIND: "L4"}
CLASSES: dict[str, tuple[type[nn.Module], ...]] = {
    L2_KIND: (HorizonManagerPPO,),
    L3_KIND: (TemporalDecisionTransformer, L3PolicyModel),
    L4_KIND: (GlobalCoordinator,),
}


def kind_of(model: nn.Module) -> str:
    """The mark of a network's files."""
    for kind, classes in CLASSES.items():
        if isinstance(model, classes):
            return kind
    raise TypeError(f"{type(model).__name__} is not one of the market's networks")


def save_network(path: Path, model: nn.Module, step: int = 0, data: Mapping[str, Any] | None = None) -> None:
    """Write weights, the network's options, and the options of the samples it learnt from (by default its own)."""
    learnt = getattr(model, "data", {}) if data is None else dict(data)
    state = {
        "options": getattr(model, "options", {}),
        "plan": getattr(model, "plan", ""),
        "data": learnt,
        "model": model.state_dict(),
    }
    save_checkpoint(path, kind_of(model), step, state)


def load_network(path: Path, kind: str, device: torch.device | str = "cpu") -> nn.Module:
    """A network in evaluation mode from weights or a training checkpoint."""
    state = load_checkpoint(path, kind, device).state
    try:
        model = _built(kind, state)
    except (KeyError, TypeError, ValueError, ArithmeticError, RuntimeError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise CheckpointError(f"The file {path} does not hold an {LAYERS[kind]} network: {first}.") from None
    data = {} if state.get("data") is None else state["data"]
    if not isinstance(data, dict) or not all(isinstance(data.get(part, {}), dict) for part in ("l1", "features")):
        raise CheckpointError(f"The file {path} says in no readable way what its network learnt from.")
    model.data = dict(data)  # type: ignore[assignment]
    return model.to(device).eval()


def from_plain(network: Plain) -> nn.Module:
    """The inverse of `forward.plain`: a network in evaluation mode."""
    tensors = {name: torch.as_tensor(value) for name, value in network.arrays.items()}
    model = _built(network.kind, {"options": network.options, "plan": network.plan, "model": tensors})
    model.data = dict(network.data)  # type: ignore[assignment]
    return model.eval()


def untrained(kind: str, horizon: int) -> nn.Module:
    """A network that has learnt nothing, always the same."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return CLASSES[kind][0](horizon=horizon).eval()


def _built(kind: str, state: Mapping[str, Any]) -> nn.Module:
    """The network of a file; nothing is made that is larger than the tensors which are there."""
    tensors = state["model"]
    if not isinstance(tensors, dict) or not all(isinstance(value, Tensor) for value in tensors.values()):
        raise TypeError("its weights are no tensors")
    if not all(value.is_floating_point() and bool(value.isfinite().all()) for value in tensors.values()):
        raise ValueError("a weight is not a finite number")
    cls = CLASSES[kind][1 if kind == L3_KIND and state.get("plan") == "F" else 0]
    options = _checked(cls, state["options"], tensors)
    with torch.device("meta"):  # takes no memory, whatever the options say
        shapes = {name: value.shape for name, value in cls(**options).state_dict().items()}
    stored = {name: value.shape for name, value in tensors.items()}
    wrong = next((name for name in {**shapes, **stored} if shapes.get(name) != stored.get(name)), None)
    if wrong is not None:
        raise ValueError(f"its options do not fit its tensor {str(wrong)[:80]}")
    model = cls(**options)
    model.load_state_dict(tensors)
    return model


def _checked(cls: type[nn.Module], options: Any, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Options of a constructor: known names, the types of its defaults, counts within the sizes of the tensors."""
    if not isinstance(options, dict):
        raise TypeError("its options are no table")
    usual = {name: p.default for name, p in inspect.signature(cls).parameters.items()}
    most = max([len(tensors), *(side for value in tensors.values() for side in value.shape)])
    for name, value in options.items():
        if name not in usual:
            raise KeyError(f"unknown option {str(name)[:40]}")
        number = isinstance(usual[name], float) and isinstance(value, int | float) and not isinstance(value, bool)
        if type(value) is not type(usual[name]) and not number:
            raise TypeError(f"option {name} is of type {type(value).__name__}")
        if isinstance(value, float | int) and not (math.isfinite(value) and value >= 0):
            raise ValueError(f"option {name} is {value!r}"[:80])
        if type(value) is int and value > most:
            raise ValueError(f"option {name} is larger than its tensors")
    heads, width = (options.get(name, usual.get(name, 1)) for name in ("n_heads", "d_model"))
    if heads < 1 or width % heads:
        raise ValueError(f"{width} numbers cannot be divided among {heads} heads")
    return options


def load_manager(path: Path, device: torch.device | str = "cpu") -> HorizonManagerPPO:
    """An L2 network in evaluation mode."""
    return cast(HorizonManagerPPO, load_network(path, L2_KIND, device))


def check_options(path: Path | str, model: nn.Module, data: Mapping[str, Any]) -> None:
    """Refuse a network that learnt from samples made with other options of L1 or the features, or does not tell."""
    learnt = learnt_with(path, model)
    given = LearntWith(
        from_dict(L1Options, data.get("l1", {}), "the L1 of the samples"),
        from_dict(FeatureOptions, data.get("features", {}), "the features of the samples"),
    )
    for part in LearntWith._fields:
        changed = diff(to_dict(getattr(learnt, part)), to_dict(getattr(given, part)))
        if changed:
            key, theirs, ours = changed[0]
            raise UserError(f"The network {path} learnt with {part}.{key} = {theirs!r}, the samples have {ours!r}.")
