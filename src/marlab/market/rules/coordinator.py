"""L4: how a day's negotiations share what is left. Here the heuristic teacher; the network learns from it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marlab.market.logs.daystate import Array

REACH = 3.0
"""Days over which two deliveries get in each other's way."""


class HeuristicL4Coordinator:
    """Weights threads by urgency and priority, less where many deliver around the same day."""

    def weights(self, days: Array, priorities: Array, active: NDArray[np.bool_] | None = None) -> Array:
        """alpha [..., K], summing to 1 over the active threads and 0 elsewhere; empty for no threads.

        `days` (delta*) and `priorities` (`features.priority`) are [..., K].
        """
        days, priorities = np.asarray(days, np.float64), np.asarray(priorities, np.float64)
        active = np.ones(days.shape, bool) if active is None else active
        conflict = np.exp(-np.abs(days[..., :, None] - days[..., None, :]) / REACH)
        conflict = conflict * (active[..., None, :] & ~np.eye(days.shape[-1], dtype=bool))
        raw = priorities / (days + 1) / (1 + conflict.sum(-1)) * active
        return raw / np.maximum(raw.sum(-1, keepdims=True), np.finfo(np.float64).tiny)
