"""Parameters of rule W, so that variants can be compared by name in one tournament."""

from __future__ import annotations

from dataclasses import dataclass

from marlab.lab.errors import UserError
from marlab.market.rules.offers import LARGEST_LOT


@dataclass(frozen=True)
class RuleOptions:
    """How rule W sells: `LitaAgentHRL(mode="heuristic", rule={"opening_days": 5})`."""

    opening_days: int = 3
    """On these first days everybody still fills his stock, and lots can be larger."""
    opening_lots: tuple[int, ...] = (7, 5, 3)
    """Lots by round for partners who leave early, on the first days."""
    opening_prices: tuple[float, ...] = (1.0, 0.5, 0.0)
    """Prices of these lots by round, as positions between the lowest (0) and the highest (1)."""
    small_lot: int = 3
    """First lot for partners who leave early, after the first days; one unit less in every further round."""
    small_price: float = 0.0
    """Price of these lots, as a position."""
    hold: int = 18
    """Until this round, large requests for today at a low price are not taken of partners who stay: they pay more
    later. 0: never wait for that."""
    loss: float = 0.02
    """Least chance per round that a partner finds what it needs elsewhere, however long it has bargained before."""
    fill_first: bool = True
    """A middle factory sells nothing for today and tomorrow until its stock is full."""

    def __post_init__(self) -> None:
        """Refuse numbers that mean nothing."""
        for name in ("opening_lots", "small_lot"):
            lots = getattr(self, name)
            each = lots if isinstance(lots, tuple) else (lots,)
            if not each or not all(1 <= lot <= LARGEST_LOT for lot in each):
                raise UserError(f"rule.{name} is {lots}; lots are 1 to {LARGEST_LOT} units.")
        for name in ("opening_prices", "small_price"):
            prices = getattr(self, name)
            each = prices if isinstance(prices, tuple) else (prices,)
            if not each or not all(0 <= price <= 1 for price in each):
                raise UserError(f"rule.{name} is {prices}; prices are positions from 0 (lowest) to 1 (highest).")
        if self.opening_days < 0 or self.hold < 0:
            raise UserError("rule.opening_days and rule.hold must be 0 or more.")
        if not 0 <= self.loss < 1:
            raise UserError(f"rule.loss is {self.loss}; it must be at least 0 and less than 1.")
