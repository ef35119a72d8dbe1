"""Clones of several experts in one file: plain arrays and JSON, nothing in it can run.

options           JSON: format, the experts' names, the width of their networks, how they were made
weights.NAME      half precision, [E, ...] as `network.shapes` says
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from marlab.lab.errors import UserError
from marlab.lab.runs.arrays import read_npz
from marlab.lab.runs.files import trusting
from marlab.market.vector.builtin import BUILTIN, Seated, by_name
from marlab.market.vector.clones import inputs, network
from marlab.market.vector.clones.network import Weights
from marlab.market.vector.clones.policy import Clones
from marlab.market.vector.market import Market
from marlab.market.vector.rule_w import RuleW
from marlab.market.vector.seats import Policy

FORMAT = "marlab market clones"
SHIPPED = Path(__file__).parents[2] / "shipped" / "clones.npz"
OURS = "LitaAgentHRL"
"""The agent that rule W stands for."""
RANDOM = "RandomStdAgent"


@dataclass(frozen=True)
class ClonePack:
    """Experts' names, and their weights in the same order."""

    names: tuple[str, ...]
    weights: Weights
    about: dict[str, Any] = field(default_factory=dict)
    """How it was made: worlds, decisions, seed; plain JSON values."""

    def number(self, name: str) -> int:
        """Where an expert's weights are."""
        if name not in self.names:
            raise UserError(f"There is no clone of {name} in this file, expected one of: {', '.join(self.names)}.")
        return self.names.index(name)

    def policy(self, name: str, market: Market, generator: torch.Generator | None) -> Policy:
        """One expert's clone, for all seats that ask it."""
        only = {key: values[self.number(name)][None] for key, values in self.weights.items()}
        return Clones(market, only, torch.zeros_like(market.setup.lines), generator)

    def policies(self, market: Market, kind: Tensor, generator: torch.Generator | None) -> Policy:
        """All experts in one policy: `kind` [B, L, A] is the place in `names` of who sits there."""
        return Clones(market, self.weights, kind, generator)

    def seated(self, market: Market, names: Sequence[str], who: Tensor, generator: torch.Generator | None) -> Seated:
        """A whole population: `who` [B, L, A] is the place in `names`; built-in agents and our rule play themselves."""
        kind, expert = torch.zeros_like(who), torch.zeros_like(who)
        policies: dict[int, Policy] = {}
        for place, name in enumerate(names):
            mine, plain = who == place, plain_name(name)
            if plain == RANDOM or not bool(mine.any()):
                continue
            if plain in BUILTIN or plain == OURS:
                policies[place + 2] = by_name(plain, generator) if plain in BUILTIN else RuleW(market, quick=True)
                kind[mine] = place + 2
            else:
                kind[mine], expert[mine] = 1, self.number(plain)
        if bool((kind == 1).any()):
            policies[1] = self.policies(market, expert, generator)
        return Seated(market, kind, policies, generator)

    def to_bytes(self) -> bytes:
        """The file's content."""
        options = {"format": FORMAT, "inputs": inputs.VERSION, "names": list(self.names), "about": self.about}
        options["hidden"] = self.weights["middle"].shape[-1]
        arrays = {f"weights.{name}": values.cpu().numpy().astype(np.float16) for name, values in self.weights.items()}
        file = io.BytesIO()
        np.savez_compressed(file, options=np.array(json.dumps(options)), **arrays)  # type: ignore[arg-type]
        return file.getvalue()


def plain_name(agent: str) -> str:
    """The class of an agent, without its module and parameters."""
    return agent.partition("(")[0].rpartition(":")[2].rpartition(".")[2]


def load(path: Path | None = None) -> ClonePack:
    """Read a file of clones; by default the one that comes with the package."""
    path = path or SHIPPED
    arrays = read_npz(path, "a file of `marlab market clone`")
    with trusting(f"{path} is damaged or not a file of `marlab market clone`"):
        options = json.loads(str(arrays.pop("options")))
        made_for = (options["format"], options["inputs"])
    if made_for != (FORMAT, inputs.VERSION):
        raise UserError(f"{path} holds clones for other inputs ({made_for[1]}); make it again with this version.")
    return ClonePack(*_checked(path, options, arrays), dict(options.get("about") or {}))


def _checked(path: Path, options: dict[str, Any], arrays: dict[str, Any]) -> tuple[tuple[str, ...], Weights]:
    names, hidden = options.get("names"), options.get("hidden")
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise UserError(f"{path} does not say whose clones it holds.")
    if type(hidden) is not int or not 1 <= hidden <= 4096:
        raise UserError(f"{path} has networks of width {hidden}, expected 1 to 4096.")
    weights = {}
    for name, shape in network.shapes(hidden).items():
        values = arrays.get(f"weights.{name}")
        if values is None or values.shape != (len(names), *shape) or values.dtype != np.float16:
            raise UserError(f"{path} is damaged: its weights '{name}' are missing or of another size.")
        if not np.isfinite(values).all():
            raise UserError(f"{path} is damaged: its weights '{name}' are not finite.")
        weights[name] = torch.as_tensor(values.astype(np.float32))
    return tuple(names), weights
