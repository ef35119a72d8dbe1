"""Small hand-made seas for the tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from marlab.fish.sea.dynamics import SeaState
from tests.fish.reference import ReferenceFish, ReferenceSea

Pair = Sequence[float]


def sea_of(
    positions: Sequence[Pair],
    velocities: Sequence[Pair] | None = None,
    predator: Pair = (0.0, 9.0),
    predator_velocity: Pair = (0.0, 0.0),
    dtype: torch.dtype = torch.float32,
) -> SeaState:
    """One arena [1, F] in which every fish lives."""
    place = torch.tensor(positions, dtype=dtype)[None]
    speed = torch.zeros_like(place) if velocities is None else torch.tensor(velocities, dtype=dtype)[None]
    alive = torch.ones(place.shape[:2], dtype=torch.bool)
    hunter = [torch.tensor([value], dtype=dtype) for value in (*predator, *predator_velocity)]
    return SeaState(
        *place.unbind(-1),
        *speed.unbind(-1),
        alive,
        alive.clone(),
        torch.full(alive.shape, -1, dtype=torch.int32),
        *hunter,
        torch.zeros(1, dtype=torch.int32),
        place.new_zeros(1, 0),
        place.new_zeros(1, 0),
    )


def reference_of(state: SeaState, arena: int = 0, **settings: Any) -> ReferenceSea:
    """The same arena as a plain loop."""
    rows = torch.stack(state[:4], dim=-1)[arena].double().tolist()
    hunter = [float(value[arena]) for value in state.predator]
    return ReferenceSea([ReferenceFish(*row) for row in rows], *hunter, **settings)
