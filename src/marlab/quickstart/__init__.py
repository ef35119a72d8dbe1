"""`marlab quickstart`: the market's whole loop at its smallest."""
