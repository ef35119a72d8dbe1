"""Parameters of rule W, so that variants can be compared by name in one tournament."""

from __future__ import annotations

from dataclasses import dataclass

from marlab.lab.errors import UserError

LARGEST_LOT = 30
"""The simulator never lets a negotiation be about more units than this."""


@dataclass(frozen=True)
class RuleOptions:
    """How rule W sells: `LitaAgentHRL(mode="heuristic", rule={"opening_days": 5})`."""

    raise_round: int = 2
    """From this round on the highest price is bid for supplies instead of the lowest."""
    opening_days: int = 3
    """On these first days everybody still fills his stock, and lots can be larger."""
    opening_lots: tuple[int, ...] = (7, 4, 2)
    """Lots for partners who leave early, on the first days, by round."""
    opening_prices: tuple[float, ...] = (1.0, 1.0, 0.5)
    """Prices of these lots by round, as positions between the lowest (0) and the highest (1)."""
    day_lots: tuple[int, ...] = ()
    """Instead of both: the first lot by day, two units less in every further round."""
    usual_prices: tuple[float, ...] = (1.0, 0.5, 0.0)
    """Prices by round for partners who leave early, after the first days."""
    usual_later: bool = False
    """Small lots after the first days are for a later day, except to partners who only ask for today."""
    fill_first: bool = False
    """A middle factory sells nothing for today and tomorrow until its stock is full."""
    patient_lots: tuple[int, ...] = (10, 10, 5)
    """Lots for strangers who keep bargaining, in turn, until round 10."""
    patient_prices: tuple[float, ...] = (1.0,)
    """Prices of these lots, in turn."""
    pack: bool = False
    """Small lots share days, so that others stay empty for large ones."""
    meet: bool = False
    """Answer a request that is too large with what there is room for, on the partner's day and at its price."""
    nearest: bool = False
    """Sell to patient partners for the nearest day with room, not for any of the emptiest days."""
    waiting: bool = False
    """Weigh a partner's offer against what waiting for its next ones is worth."""
    price_weight: float = 0.0
    """How much a price above the trading price is worth beyond itself, on the first day: it moves later prices."""
    hold: int = 0
    """Until this round, large requests at low prices of partners who stay are not taken: they pay more later."""
    arms: bool = False
    """Offer patient partners what promised most so far, by how often they took offers of its kind."""
    window: int = 0
    """What to expect in a round is judged by offers made this many rounds before or after it; 0: by all."""
    loss: float = 0.02
    """Least chance per round that a partner finds what it needs elsewhere, however long it has bargained before."""

    def __post_init__(self) -> None:
        """Refuse numbers that mean nothing."""
        for name in ("opening_lots", "patient_lots"):
            lots = getattr(self, name)
            if not lots or not all(1 <= lot <= LARGEST_LOT for lot in lots):
                raise UserError(f"rule.{name} is {lots}; it must be lots of 1 to {LARGEST_LOT} units.")
        for name in ("opening_prices", "patient_prices", "usual_prices"):
            prices = getattr(self, name)
            if not prices or not all(0 <= price <= 1 for price in prices):
                raise UserError(f"rule.{name} is {prices}; it must be positions from 0 (lowest) to 1 (highest).")
        if self.opening_days < 0:
            raise UserError(f"rule.opening_days is {self.opening_days}; it must be 0 or more.")
        if not 0 <= self.loss < 1:
            raise UserError(f"rule.loss is {self.loss}; it must be at least 0 and less than 1.")
