"""`marlab hunt train`: phases, gates and the run around them."""
