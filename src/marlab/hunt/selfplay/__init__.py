"""How planning agents learn by playing."""
