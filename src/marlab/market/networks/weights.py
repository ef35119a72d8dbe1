"""Weights of the three networks on disk: each file says what network it holds and what samples it learnt from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from marlab.lab.config import diff
from marlab.lab.errors import UserError
from marlab.lab.runs.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from marlab.market.networks.coordinator import GlobalCoordinator
from marlab.market.networks.executor import L3PolicyModel, TemporalDecisionTransformer
from marlab.market.networks.manager import KIND as L2_KIND
from marlab.market.networks.manager import HorizonManagerPPO

L3_KIND, L4_KIND = "market/l3", "market/l4"
LAYERS = {L2_KIND: "L2", L3_KIND: "L3", L4_KIND: "L4"}


def kind_of(model: nn.Module) -> str:
    """The mark of a network's files."""
    if isinstance(model, HorizonManagerPPO):
        return L2_KIND
    if isinstance(model, TemporalDecisionTransformer):
        return L3_KIND
    if isinstance(model, GlobalCoordinator):
        return L4_KIND
    raise TypeError(f"{type(model).__name__} is not one of the market's networks")


def save_network(path: Path, model: nn.Module, step: int = 0, data: Mapping[str, Any] | None = None) -> None:
    """Write weights, the network's options, and the options of the samples it learnt from (by default its own)."""
    learnt = getattr(model, "data", {}) if data is None else dict(data)
    state = {
        "options": getattr(model, "options", {}), "plan": getattr(model, "plan", ""), "data": learnt,
        "model": model.state_dict(),
    }  # fmt: skip
    save_checkpoint(path, kind_of(model), step, state)


def load_network(path: Path, kind: str, device: torch.device | str = "cpu") -> nn.Module:
    """A network in evaluation mode from weights or a training checkpoint."""
    state = load_checkpoint(path, kind, device).state
    classes: dict[str, type[nn.Module]] = {
        L2_KIND: HorizonManagerPPO,
        L3_KIND: L3PolicyModel if state.get("plan") == "F" else TemporalDecisionTransformer,
        L4_KIND: GlobalCoordinator,
    }
    try:
        model = classes[kind](**state["options"])
        model.load_state_dict(state["model"])
    except (KeyError, TypeError, RuntimeError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise CheckpointError(f"The file {path} does not hold an {LAYERS[kind]} network: {first}.") from None
    model.data = dict(state.get("data", {}))  # type: ignore[assignment]
    return model.to(device).eval()


def load_manager(path: Path, device: torch.device | str = "cpu") -> HorizonManagerPPO:
    """An L2 network in evaluation mode."""
    return cast(HorizonManagerPPO, load_network(path, L2_KIND, device))


def check_options(path: Path, model: nn.Module, data: Mapping[str, Any]) -> None:
    """Refuse a network that learnt from samples made with other options of L1 or the features."""
    learnt: Any = getattr(model, "data", {})
    if not learnt:
        return
    for part in ("l1", "features"):
        changed = diff(learnt.get(part, {}), data.get(part, {}))
        if changed:
            key, theirs, ours = changed[0]
            raise UserError(f"The network {path} learnt with {part}.{key} = {theirs!r}, the samples have {ours!r}.")
