"""L1 in use: a ledger of what is left while a day's deals are signed, and the guide's `L1SafetyLayer`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marlab.market.logs.daystate import HORIZON, Array, DayState
from marlab.market.rules import l1
from marlab.market.rules.l1 import Action, Caps, Clipped, Issue, L1Options


class Ledger:
    """One day with the deals signed since the morning, and what they leave.

    What the offers of one round take from each other before they are signed is `l1.SideLeft`'s matter.
    """

    def __init__(self, state: DayState, options: L1Options) -> None:
        """Start from the morning's state of a single day."""
        self.options = options
        self.state = state
        """The morning with the deals signed since."""
        self.caps = l1.caps(state, options)
        """What is left for one more deal."""

    def sign(self, selling: bool, quantity: float, price: float, day: int) -> None:
        """Take a signed deal of `quantity` units for delivery in `day` days out of what is left."""
        units, zero = np.zeros_like(self.state.q_in), np.zeros_like(self.state.q_in)
        units[min(int(day), self.state.horizon)] = quantity
        deal = (zero, zero, units, units * price) if selling else (units, units * price, zero, zero)
        self.state = self.state.with_signed(*deal)
        self.caps = l1.caps(self.state, self.options)


@dataclass(frozen=True)
class L1Output:
    """All that L1 says about one side of a day (or of a batch of days)."""

    Q_safe: Array  # [..., H+1]
    Q_safe_sell: Array  # [..., H+1]
    B_free: Array  # [...]
    time_mask: Array  # [..., H+1], 0 or -inf
    baseline: Action  # each [...], inside the issue
    issue: Issue

    @property
    def caps(self) -> Caps:
        """The three bounds as the functions of `l1` take them."""
        return Caps(self.Q_safe, self.Q_safe_sell, self.B_free)


class L1SafetyLayer:
    """The functions of `l1` under the guide's names, with one set of options."""

    def __init__(self, horizon: int = HORIZON, options: L1Options | None = None) -> None:
        """`horizon` must be that of the states given later."""
        self.horizon = horizon
        self.options = options or L1Options()

    def compute(self, state: DayState, is_buying: bool = True) -> L1Output:
        """Caps, budget, time mask and baseline of one side."""
        if state.horizon != self.horizon:
            raise ValueError(f"the state looks {state.horizon} days ahead, this layer {self.horizon}")
        bounds = l1.caps(state, self.options)
        issue = l1.issue_of(state, not is_buying)
        mask = l1.time_mask(bounds.of(not is_buying), issue)
        return L1Output(*bounds, mask, self._compute_baseline(state, bounds, is_buying), issue)

    def _compute_baseline(self, state: DayState, bounds: Caps, is_buying: bool) -> Action:
        return l1.baseline(state, bounds, not is_buying, self.options)

    def clip_action(self, action: Action, output: L1Output, is_buying: bool = True) -> Clipped:
        """The legal offer nearest to an action, or none."""
        cap = output.caps.of(not is_buying)
        return l1.clip_action(action, cap, output.B_free, not is_buying, output.issue, output.time_mask)
